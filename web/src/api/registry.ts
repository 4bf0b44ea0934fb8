/** The registry: what is kept, how it is sent, asked about and requested. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import type { RunCreated, RunList } from "./generated/runs";
import type { DefinitionGraph, RegisteredWorkflows, WorkflowDocument, WorkflowFacts, WorkflowList, WorkflowStages, WorkflowVerdict } from "./generated/workflows";
import { get, inPath, post, postFile, postLook, remove } from "./http";
import type { RunFacts } from "./types";

export type { DefinitionGraph as DefinitionGraphDocument, ParameterFacts as Parameter, RegisteredWorkflows as Registered, StageDocument, StageFile, WorkflowDocument, WorkflowFacts, WorkflowVerdict as Verdict } from "./generated/workflows";

export interface RunRequest {
  workflow: string;
  version: string;
  parameters: Record<string, unknown>;
  name?: string;
  options?: { priority?: number; paused?: boolean };
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

export const definitionGraphQuery = (name: string, version: string, start: string, stop: string, parameters: Record<string, unknown>) =>
  queryOptions({
    queryKey: ["workflows", name, version, "graph", start, stop, parameters],
    queryFn: ({ signal }) => postLook<DefinitionGraph>(`${place(name, version)}/graph`, { start, stop, parameters }, signal),
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
