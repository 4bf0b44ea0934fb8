/** Scheduling block instances, processing blocks and the objects that stages wait for. */
import { queryOptions } from "@tanstack/react-query";
import type { AbortedSbi, BlockDocument, BlockFacts, BlockHistory, BlockList, ObjectList, SbiAnswer, SbiList } from "./generated/blocks";
import { get, inPath, post, postFile, remove } from "./http";

export type { BlockDocument, BlockFacts, BufferObject, SbiAnswer, SbiFacts, StageFacts as Stage } from "./generated/blocks";

const LOOK_AGAIN_MS = 3_000; // no event tells of blocks and objects

export const sbisQuery = queryOptions({
  queryKey: ["blocks", "instances"],
  queryFn: ({ signal }) => get<SbiList>("/sbis?limit=200", signal),
  select: (found) => found.sbis,
  refetchInterval: LOOK_AGAIN_MS,
});

export const blocksQuery = queryOptions({
  queryKey: ["blocks", "all"],
  queryFn: ({ signal }) => get<BlockList>("/processing-blocks?limit=500", signal),
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

export const blockHistoryQuery = (id: string) =>
  queryOptions({
    queryKey: ["blocks", "one", id, "history"],
    queryFn: ({ signal }) => get<BlockHistory>(`/processing-blocks/${inPath(id)}/history`, signal),
    select: (found) => found.events,
    refetchInterval: LOOK_AGAIN_MS,
  });

export const objectsQuery = queryOptions({
  queryKey: ["objects"],
  queryFn: ({ signal }) => get<ObjectList>("/objects", signal),
  select: (found) => found.objects,
  refetchInterval: LOOK_AGAIN_MS,
});

export const postSbi = (text: string, file: string, dryRun: boolean): Promise<SbiAnswer> =>
  postFile<SbiAnswer>(`/sbis?file=${encodeURIComponent(file)}&dry_run=${dryRun}`, new Blob([text]), /\.ya?ml$/.test(file) ? "application/yaml" : "application/json");

export const abortBlock = (id: string, reason: string): Promise<BlockFacts> =>
  post<BlockFacts>(`/processing-blocks/${inPath(id)}/abort`, { reason });

export const abortSbi = (id: string, reason: string): Promise<AbortedSbi> =>
  post<AbortedSbi>(`/sbis/${inPath(id)}/abort`, { reason });

export const postObject = (name: string, facts: Record<string, unknown>): Promise<unknown> =>
  post("/objects", { objects: [{ name, facts }] });

export const removeObject = (name: string): Promise<unknown> => remove(`/objects/${inPath(name)}`);
