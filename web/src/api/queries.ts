/** What can be asked for, each with the key under which it is remembered. Keys of a run begin with ["run", name]. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { get, inPath } from "./http";
import type { GraphDocument, RunFacts, RunSummary, Session, TaskDocument } from "./types";

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: () => get<Session>("/session"),
  staleTime: Infinity,
  retry: (count, error) => count < 3 && "status" in error && error.status === 0,
});

export const runsQuery = queryOptions({
  queryKey: ["runs"],
  queryFn: ({ signal }) => get<{ runs: RunFacts[] }>("/runs?limit=200", signal),
  select: (found) => found.runs,
});

export const summaryQuery = (run: string) =>
  queryOptions({
    queryKey: ["run", run, "summary"],
    queryFn: ({ signal }) => get<RunSummary>(`/runs/${inPath(run)}/summary`, signal),
    staleTime: 5_000,
  });

export const graphQuery = (run: string, edges: number) =>
  queryOptions({
    queryKey: ["run", run, "graph", edges],
    queryFn: ({ signal }) => get<GraphDocument>(`/runs/${inPath(run)}/graph?n=${edges}`, signal),
    placeholderData: keepPreviousData,
  });

export const taskQuery = (run: string, id: string) =>
  queryOptions({
    queryKey: ["run", run, "task", id],
    queryFn: async ({ signal }) => {
      const found = await get<{ tasks: TaskDocument[] }>(
        `/runs/${inPath(run)}?ids=${encodeURIComponent(id)}`,
        signal,
      );
      const [task] = found.tasks;
      if (task === undefined) throw new Error(`${id} is not in this run`);
      return task;
    },
  });
