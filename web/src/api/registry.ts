/** The registry: what is kept, how it is sent, asked about and requested. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import type { RunDiff, RunVersions } from "./generated/run_details";
import type { RunCreated, RunList } from "./generated/runs";
import type { DefinitionGraph, RegisteredWorkflows, WorkflowDiff, WorkflowDocument, WorkflowFacts, WorkflowList, WorkflowStages, WorkflowVerdict } from "./generated/workflows";
import { get, getBytes, inPath, post, postFile, postLook, remove } from "./http";
import type { RunFacts } from "./types";

export type { DefinitionGraph as DefinitionGraphDocument, ParameterFacts as Parameter, RegisteredWorkflows as Registered, RunRange, StageDocument, StageFile, WorkflowDiff, WorkflowDocument, WorkflowFacts, WorkflowVerdict as Verdict } from "./generated/workflows";

/** As `tidewheel run` takes them; points are texts. */
export interface RunOptions {
  priority?: number;
  paused?: boolean;
  mode?: string;
  initial?: string;
  final?: string;
  start?: string;
  stop?: string;
}

export interface RunRequest {
  workflow: string;
  version: string;
  parameters: Record<string, unknown>;
  name?: string;
  options?: RunOptions;
}

export const workflowsQuery = queryOptions({
  queryKey: ["workflows"],
  queryFn: ({ signal }) => get<WorkflowList>("/workflows", signal),
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

/** What a run would be given: its parameters, and its points; null: nothing was said of them. */
export interface Given {
  parameters: Record<string, unknown>;
  points: Pick<RunOptions, "initial" | "final" | "start" | "stop"> | null;
}

/** With points, what a run with these would go through. */
export const definitionGraphQuery = (name: string, version: string, start: string, stop: string, { parameters, points }: Given) =>
  queryOptions({
    queryKey: ["workflows", name, version, "graph", start, stop, parameters, points],
    queryFn: ({ signal }) => postLook<DefinitionGraph>(`${place(name, version)}/graph`, { start, stop, parameters, ...(points === null ? {} : { options: points }) }, signal),
    placeholderData: keepPreviousData,
    retry: false,
  });

/** Of a workflow of stages alone. */
export const stagesQuery = (name: string, version: string, parameters: Record<string, unknown>) =>
  queryOptions({
    queryKey: ["workflows", name, version, "stages", parameters],
    queryFn: ({ signal }) => postLook<WorkflowStages>(`${place(name, version)}/stages`, { parameters }, signal),
    placeholderData: keepPreviousData,
    retry: false,
  });

/** Of all versions: who registered each, and when. */
export const versionsQuery = (name: string) =>
  queryOptions({
    queryKey: ["workflows", name, "versions"],
    queryFn: ({ signal }) => get<WorkflowList>(`/workflows?name=${encodeURIComponent(name)}`, signal),
    select: (found) => found.workflows,
  });

export const diffQuery = (name: string, version: string, against: string) =>
  queryOptions({
    queryKey: ["workflows", name, version, "diff", against],
    queryFn: ({ signal }) => get<WorkflowDiff>(`${place(name, version)}/diff?against=${encodeURIComponent(against)}`, signal),
    retry: false,
  });

export const definitionFile = async (name: string, version: string, path: string, signal: AbortSignal): Promise<Uint8Array> =>
  (await getBytes(`${place(name, version)}/definition?path=${encodeURIComponent(path)}`, signal)).bytes;

export interface KeptDefinition {
  digest: string;
  workflow: string;
  kind: string;
  text: string;
  files: { path: string; content: string; executable: boolean }[];
}

/** What a run runs, with its files in base64. */
export const runDefinitionQuery = (run: string) =>
  queryOptions({
    queryKey: ["run", run, "definition"],
    queryFn: ({ signal }) => get<KeptDefinition>(`/runs/${inPath(run)}/definition`, signal),
    retry: false,
  });

/** The definitions that a run had, one for each reload, and what was found in the one it has. */
export const runVersionsQuery = (run: string) =>
  queryOptions({
    queryKey: ["run", run, "definition", "versions"],
    queryFn: ({ signal }) => get<RunVersions>(`/runs/${inPath(run)}/definition/versions`, signal),
    retry: false,
  });

export const runDiffQuery = (run: string, version: number, against: number) =>
  queryOptions({
    queryKey: ["run", run, "definition", "diff", version, against],
    queryFn: ({ signal }) => get<RunDiff>(`/runs/${inPath(run)}/definition/diff?version=${version}&against=${against}`, signal),
    staleTime: Infinity, // what a run had never changes
    retry: false,
  });

export const runsOfQuery = (workflow: string) =>
  queryOptions({
    queryKey: ["runs", "of", workflow],
    queryFn: ({ signal }) => get<RunList>(`/runs?limit=50&workflow=${encodeURIComponent(workflow)}`, signal),
    select: (found) => found.runs,
  });

export const checkRequest = (name: string, version: string, parameters: Record<string, unknown>): Promise<WorkflowVerdict> =>
  postLook<WorkflowVerdict>(`${place(name, version)}/check`, { parameters });

export const beginRun = async (asked: RunRequest): Promise<RunFacts> => (await post<RunCreated>("/runs", asked)).run;

export const removeWorkflow = (name: string, version: string): Promise<WorkflowFacts> =>
  remove<WorkflowFacts>(place(name, version));

export const registerArchive = (content: Blob, mediaType: string, name: string, version: string): Promise<RegisteredWorkflows> =>
  postFile<RegisteredWorkflows>(`/workflows?${new URLSearchParams({ name, version }).toString()}`, content, mediaType);

/** Contents in base64, by their paths. */
export const registerFiles = (files: Record<string, { base64: string }>, name: string, version: string): Promise<RegisteredWorkflows> =>
  post<RegisteredWorkflows>("/workflows", { files, name, version });
