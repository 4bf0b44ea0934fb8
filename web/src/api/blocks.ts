/** Scheduling block instances, processing blocks and the objects that stages wait for. */
import { queryOptions } from "@tanstack/react-query";
import { get, inPath, post, postFile, remove, type Finding } from "./http";

export interface SbiFacts {
  id: string;
  requested_at: string;
  requested_by: string;
}

export interface BlockFacts {
  id: string;
  sbi: string | null;
  type: string | null;
  workflow: string;
  version: string | number | null;
  parameters: Record<string, unknown>;
  priority: number;
  run: number;
  status: string;
  reason: string;
  waits: string[];
  never: boolean;
  needs: { block: string; condition: string; status: string; state: string }[];
  created_at: string;
  updated_at: string;
  ended_at: string | null;
}

export interface Stage {
  id: string;
  stage: string | null;
  object: string | null;
  state: string;
  remarks: string[];
  submit: number;
  started_at: string | null;
  ended_at: string | null;
  exit_status: number | null;
  error: string | null;
  worker: string | null;
  values: Record<string, unknown> | null;
  why: string[];
}

export interface BlockDocument extends BlockFacts {
  stages: Stage[];
}

export interface BufferObject {
  name: string;
  facts: Record<string, unknown>;
  posted_at: string;
  posted_by: string;
}

export interface SbiAnswer extends SbiFacts {
  blocks: BlockFacts[];
  is_new: boolean;
  findings: Finding[];
}

const LOOK_AGAIN_MS = 3_000; // no event tells of blocks and objects

export const sbisQuery = queryOptions({
  queryKey: ["blocks", "instances"],
  queryFn: ({ signal }) => get<{ sbis: SbiFacts[] }>("/sbis?limit=200", signal),
  select: (found) => found.sbis,
  refetchInterval: LOOK_AGAIN_MS,
});

export const blocksQuery = queryOptions({
  queryKey: ["blocks", "all"],
  queryFn: ({ signal }) => get<{ blocks: BlockFacts[] }>("/processing-blocks?limit=500", signal),
  select: (found) => found.blocks,
  refetchInterval: LOOK_AGAIN_MS,
});

export const blockQuery = (id: string) =>
  queryOptions({
    queryKey: ["blocks", "one", id],
    queryFn: ({ signal }) => get<BlockDocument>(`/processing-blocks/${inPath(id)}`, signal),
    refetchInterval: LOOK_AGAIN_MS,
    retry: false,
  });

export const objectsQuery = queryOptions({
  queryKey: ["objects"],
  queryFn: ({ signal }) => get<{ objects: BufferObject[] }>("/objects", signal),
  select: (found) => found.objects,
  refetchInterval: LOOK_AGAIN_MS,
});

export const postSbi = (text: string, file: string): Promise<SbiAnswer> =>
  postFile<SbiAnswer>(`/sbis?file=${encodeURIComponent(file)}`, new Blob([text]), /\.ya?ml$/.test(file) ? "application/yaml" : "application/json");

export const abortBlock = (id: string, reason: string): Promise<BlockFacts> =>
  post<BlockFacts>(`/processing-blocks/${inPath(id)}/abort`, { reason });

export const postObject = (name: string, facts: Record<string, unknown>): Promise<unknown> =>
  post("/objects", { objects: [{ name, facts }] });

export const removeObject = (name: string): Promise<unknown> => remove(`/objects/${inPath(name)}`);
