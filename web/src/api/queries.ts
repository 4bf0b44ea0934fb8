/** What can be asked for, each with the key under which it is remembered. Keys of a run begin with ["run", name]. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { get, inPath } from "./http";
import type { RunCreated, RunGrid, RunList } from "./generated/runs";
import type { CriticalPath, RunAttempts, RunSummary, Session, TaskDocument } from "./types";

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: () => get<Session>("/session"),
  staleTime: Infinity,
  retry: (count, error) => count < 3 && "status" in error && error.status === 0,
});

export const runsQuery = queryOptions({
  queryKey: ["runs"],
  queryFn: ({ signal }) => get<RunList>("/runs?limit=200", signal),
  select: (found) => found.runs,
});

const SUMMARIES_MS = 2_000; // a server looks into a few runs for each request
const RUNS_MS = 30_000; // a scheduler that was killed tells nobody

/** All of them in one page, with how far each is; page by page only beyond a thousand, the newest first. */
export const runPagesQuery = infiniteQueryOptions({
  queryKey: ["runs", "pages"],
  queryFn: ({ signal, pageParam }) => get<RunList>(`/runs?limit=1000&summary=true${pageParam === null ? "" : `&before=${pageParam}`}`, signal),
  initialPageParam: null as number | null,
  getNextPageParam: (last) => last.next,
  refetchInterval: (query) => ((query.state.data?.pages ?? []).some((page) => (page.summaries_left ?? 0) > 0) ? SUMMARIES_MS : RUNS_MS),
});

/** Runs by points; also while nobody sees the page, for the title of its tab and for its notifications. */
export const gridQuery = (name: string, status: string) =>
  queryOptions({
    queryKey: ["runs", "grid", name, status],
    queryFn: ({ signal }) => get<RunGrid>(`/grid?${new URLSearchParams({ name, status }).toString()}`, signal),
    placeholderData: keepPreviousData,
    refetchInterval: RUNS_MS,
    refetchIntervalInBackground: true,
  });

const FACTS_MS = 10_000; // a scheduler that was killed tells nobody
const HIDDEN_MS = 30_000;

/** Who drives a run. */
export const factsQuery = (run: string) =>
  queryOptions({
    queryKey: ["run", run, "facts"],
    queryFn: ({ signal }) => get<RunCreated>(`/runs/${inPath(run)}/facts`, signal),
    select: (found) => found.run,
    refetchInterval: () => (document.hidden ? HIDDEN_MS : FACTS_MS), // for the title of its tab
    refetchIntervalInBackground: true,
  });

export const summaryQuery = (run: string) =>
  queryOptions({
    queryKey: ["run", run, "summary"],
    queryFn: ({ signal }) => get<RunSummary>(`/runs/${inPath(run)}/summary`, signal),
    staleTime: 5_000,
  });

/** The summary of a run as it was at a time of change: it is asked for again only when the run has changed. */
export const causeQuery = (run: string, updatedAt: string) =>
  queryOptions({
    queryKey: ["cause", run, updatedAt],
    queryFn: ({ signal }) => get<RunSummary>(`/runs/${inPath(run)}/summary`, signal),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    retry: false,
  });

export const attemptsQuery = (run: string) =>
  queryOptions({
    queryKey: ["run", run, "attempts"],
    queryFn: ({ signal }) => get<RunAttempts>(`/runs/${inPath(run)}/attempts?limit=5000`, signal),
    placeholderData: keepPreviousData,
    staleTime: 2_000,
  });

export const criticalPathQuery = (run: string, id: string) =>
  queryOptions({
    queryKey: ["run", run, "critical path", id],
    queryFn: ({ signal }) => get<CriticalPath>(`/runs/${inPath(run)}/critical-path?id=${encodeURIComponent(id)}`, signal),
    placeholderData: keepPreviousData,
    staleTime: 5_000,
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
