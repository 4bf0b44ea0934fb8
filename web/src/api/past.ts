/** A run as it was behind one of its batches. What is past does not change, so it is asked for once. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { get, inPath } from "./http";
import type { LiveState } from "./live";
import type { GraphDocument, PastDocument, TaskRow } from "./types";

export type { PastBatch, PastChange, PastCommand, PastDocument } from "./types";

export const pastQuery = (run: string, batch: number) =>
  queryOptions({
    queryKey: ["past", run, batch],
    queryFn: ({ signal }) => get<PastDocument>(`/runs/${inPath(run)}/past?batch=${batch}`, signal),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    gcTime: 30_000,
  });

export const pastGraphQuery = (run: string, batch: number, edges: number, ids: readonly string[]) =>
  queryOptions({
    queryKey: ["past", run, batch, "graph", edges, ids],
    queryFn: ({ signal }) =>
      get<GraphDocument>(`/runs/${inPath(run)}/past/graph?batch=${batch}&n=${edges}${ids.length > 0 ? `&ids=${encodeURIComponent(ids.join(","))}` : ""}`, signal),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    gcTime: 30_000,
  });

/** The rows of a moment, for whatever draws the rows of a run (`RunMoment`). */
export class PastRows {
  private readonly byId: Map<string, TaskRow>;
  private readonly state: LiveState;

  constructor(past: PastDocument) {
    this.byId = new Map(past.tasks.map((task) => [task.id, task]));
    this.state = { phase: "ready", problem: null, run: past.run, stages: past.stages === true, batch: past.batch, rows: past.tasks, nodes: past.nodes, points: past.points, pointsLeftOut: past.points_left_out, past: { batch: past.batch, touched: new Set(past.changed.map((one) => one.id)) } };
  }

  // What is past does not change.
  readonly subscribe = (): (() => void) => () => undefined;
  readonly snapshot = (): LiveState => this.state;
  readonly row = (id: string): TaskRow | undefined => this.byId.get(id);
}

/** Behind which batch the run was at a time. */
export const batchAt = async (run: string, at: Date): Promise<number> =>
  (await get<PastDocument>(`/runs/${inPath(run)}/past?at=${encodeURIComponent(at.toISOString())}`)).batch;
