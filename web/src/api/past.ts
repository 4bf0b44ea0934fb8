/** A run as it was behind one of its batches. What is past does not change, so it is asked for once. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { get, inPath } from "./http";
import type { TaskRows, TaskWords } from "./types";

export interface PastBatch {
  batch: number;
  at: string;
  status: string | null; // of the run, if it changed
  tasks: Pick<TaskWords, "id" | "state" | "remarks" | "flows" | "in_pool">[];
  left_pool: string[];
}

export interface PastCommand {
  number: number;
  at: string;
  who: string;
  verb: string;
  arguments: Record<string, unknown>;
  answered_at: string | null;
  refused: string | null;
}

export interface PastDocument extends Omit<TaskRows, "cursor"> {
  at: string;
  status: string;
  last_batch: number;
  around: PastBatch[];
  commands: PastCommand[];
}

export const pastQuery = (run: string, batch: number) =>
  queryOptions({
    queryKey: ["past", run, batch],
    queryFn: ({ signal }) => get<PastDocument>(`/runs/${inPath(run)}/past?batch=${batch}`, signal),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    gcTime: 30_000,
  });

/** Behind which batch the run was at a time. */
export const batchAt = async (run: string, at: Date): Promise<number> =>
  (await get<PastDocument>(`/runs/${inPath(run)}/past?at=${encodeURIComponent(at.toISOString())}`)).batch;
