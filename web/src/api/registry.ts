/** The registry: what is kept, how it is sent, asked about and requested. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { get, inPath, post, postFile, postLook, remove, type Finding } from "./http";
import type { RunFacts } from "./types";

export interface Parameter {
  name: string;
  required: boolean;
  stages: string[];
  provided_by: string[];
  default?: unknown;
}

export interface WorkflowFacts {
  name: string;
  version: string;
  kind: string;
  definition: string;
  runnable: boolean;
  parameters: Parameter[];
  registered_at: string;
  registered_by: string;
}

export interface WorkflowDocument extends WorkflowFacts {
  findings: Finding[];
  versions: string[];
  files: { path: string; size: number; executable: boolean }[];
}

export interface Registered {
  workflows: { name: string; version: string; runnable: boolean; is_new: boolean; findings: Finding[] }[];
}

export interface Verdict {
  registrable: boolean;
  runnable: boolean;
  findings: Finding[];
}

/** As `tidewheel graph --json` says it. */
export interface DefinitionGraphDocument {
  points: string[];
  tasks: { id: string; name: string; point: string; family: string | null }[];
  edges: { parent: string; child: string; outputs: string[]; certain: boolean; suicide: boolean }[];
  cut: boolean;
  findings: Finding[];
}

export interface RunRequest {
  workflow: string;
  version: string;
  parameters: Record<string, unknown>;
  name?: string;
  options?: { priority?: number; paused?: boolean };
}

export const workflowsQuery = queryOptions({
  queryKey: ["workflows"],
  queryFn: ({ signal }) => get<{ workflows: WorkflowFacts[] }>("/workflows", signal),
  select: (found) => found.workflows,
});

const place = (name: string, version: string): string =>
  `/workflows/${inPath(name)}${version === "" ? "" : `/${inPath(version)}`}`;

/** Without a version, the highest. */
export const workflowQuery = (name: string, version: string) =>
  queryOptions({
    queryKey: ["workflows", name, version],
    queryFn: ({ signal }) => get<WorkflowDocument>(place(name, version), signal),
    retry: false,
  });

export const definitionGraphQuery = (name: string, version: string, start: string, stop: string, parameters: Record<string, unknown>) =>
  queryOptions({
    queryKey: ["workflows", name, version, "graph", start, stop, parameters],
    queryFn: ({ signal }) => postLook<DefinitionGraphDocument>(`${place(name, version)}/graph`, { start, stop, parameters }, signal),
    placeholderData: keepPreviousData,
    retry: false,
  });

export const runsOfQuery = (workflow: string) =>
  queryOptions({
    queryKey: ["runs", "of", workflow],
    queryFn: ({ signal }) => get<{ runs: RunFacts[] }>(`/runs?limit=50&workflow=${encodeURIComponent(workflow)}`, signal),
    select: (found) => found.runs,
  });

export const checkRequest = (name: string, version: string, parameters: Record<string, unknown>): Promise<Verdict> =>
  postLook<Verdict>(`${place(name, version)}/check`, { parameters });

export const beginRun = async (asked: RunRequest): Promise<RunFacts> => (await post<{ run: RunFacts }>("/runs", asked)).run;

export const removeWorkflow = (name: string, version: string): Promise<WorkflowFacts> =>
  remove<WorkflowFacts>(place(name, version));

export const registerArchive = (content: Blob, mediaType: string, name: string, version: string): Promise<Registered> =>
  postFile<Registered>(`/workflows?${new URLSearchParams({ name, version }).toString()}`, content, mediaType);

/** Contents in base64, by their paths. */
export const registerFiles = (files: Record<string, { base64: string }>, name: string, version: string): Promise<Registered> =>
  post<Registered>("/workflows", { files, name, version });
