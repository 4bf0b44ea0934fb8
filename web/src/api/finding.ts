/** What is looked for by a text, anywhere on the server: a few of each, by the filters that lists have. */
import { queryOptions } from "@tanstack/react-query";
import { get, inPath } from "./http";
import type { RunGrid } from "./generated/runs";
import { FILTER_NAMES, type StoredTask } from "./storeTypes";
import type { RunFacts, TaskRows } from "./types";

const RUNS_MAX = 20;
const TASKS_MAX = 10;

/** Open runs and the newest of each workflow, by a part of their names or by status; also such as are not among the newest of all. */
export const foundRunsQuery = (name: string, status: string) =>
  queryOptions({
    queryKey: ["found", "runs", name, status],
    queryFn: ({ signal }) => get<RunGrid>(`/grid?${new URLSearchParams({ name, status, limit: String(RUNS_MAX), points: "1" }).toString()}`, signal),
    select: (found): readonly RunFacts[] => found.runs,
    staleTime: 5_000,
  });

/** Of the fields that lists of tasks are filtered by, those that people give them. */
const GIVEN = FILTER_NAMES.filter((name) => name !== "queue" && name !== "worker");

/** Tasks of queues that are called so, by any of these fields. */
export const foundTasksQuery = (text: string) =>
  queryOptions({
    queryKey: ["found", "tasks", text],
    queryFn: async ({ signal }) => {
      const pages = await Promise.all(GIVEN.map((field) => get<{ tasks: StoredTask[] }>(`/tasks?${new URLSearchParams({ [field]: text, limit: String(TASKS_MAX) }).toString()}`, signal)));
      return [...new Map(pages.flatMap(({ tasks }) => tasks).map((one) => [one.id, one])).values()];
    },
    staleTime: 5_000,
  });

/** Every task of a run, as its page has them. */
export const runRowsQuery = (run: string) =>
  queryOptions({
    queryKey: ["run", run, "rows"],
    queryFn: ({ signal }) => get<TaskRows>(`/runs/${inPath(run)}/tasks`, signal),
    staleTime: 3_000,
    retry: false,
  });
