/** What is looked for by a text, anywhere on the server: a few of each, by the filters that lists have. */
import { queryOptions } from "@tanstack/react-query";
import { get, inPath } from "./http";
import type { RunGrid, RunList } from "./generated/runs";
import { FILTER_NAMES, type StoredTask } from "./storeTypes";
import type { RunFacts, TaskRows } from "./types";

const RUNS_MAX = 20;
const TASKS_MAX = 10;

/**
 * Runs by a part of their names or by status, however old: those that are open and the newest of each workflow, which many others of
 * that name must not hide, then the newest of all.
 */
export const foundRunsQuery = (name: string, status: string) =>
  queryOptions({
    queryKey: ["found", "runs", name, status],
    queryFn: async ({ signal }): Promise<readonly RunFacts[]> => {
      const limit = String(RUNS_MAX);
      const asked = [`/grid?${new URLSearchParams({ name, status, limit, points: "1" }).toString()}`, `/runs?${new URLSearchParams({ matching: status === "" ? name : `:${status}`, limit }).toString()}`];
      const found = await Promise.all(asked.map((path) => get<RunGrid | RunList>(path, signal)));
      return found.flatMap(({ runs }): readonly RunFacts[] => runs);
    },
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
