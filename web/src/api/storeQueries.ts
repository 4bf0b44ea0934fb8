/** What can be asked about the whole store: queues, tasks, workers, statistics, tokens. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { get, getBytes, inPath } from "./http";
import { FILTER_NAMES, type AuditPage, type QueueFacts, type Statistics, type StoredAttempt, type StoredTask, type TokenFacts, type WorkerFacts } from "./storeTypes";

export const PAGE = 100;

export type TaskName = (typeof FILTER_NAMES)[number];
/** `jobs`: "1" with jobs of runs; those of one queue come in any case. */
export type TaskWish = Record<"status" | "jobs" | TaskName, string>;
export const wishOf = (search: Record<string, string | undefined>): TaskWish =>
  Object.fromEntries(["status", "jobs", ...FILTER_NAMES].map((name) => [name, search[name] ?? ""])) as TaskWish;
export const RUN_QUEUE = "run:";

export const queuesQuery = queryOptions({
  queryKey: ["store", "queues"],
  queryFn: ({ signal }) => get<{ queues: QueueFacts[] }>("/queues", signal),
  select: (found) => found.queues,
});

/** Page by page, the newest first. */
export const tasksQuery = (wish: TaskWish) =>
  infiniteQueryOptions({
    queryKey: ["store", "tasks", wish],
    queryFn: ({ signal, pageParam }) => {
      const jobs = wish.jobs === "1" || wish.queue.startsWith(RUN_QUEUE) ? "" : "false";
      const said = Object.entries({ ...wish, jobs, limit: String(PAGE), before: pageParam === null ? "" : String(pageParam) });
      return get<{ tasks: StoredTask[]; next: number | null }>(`/tasks?${new URLSearchParams(said.filter(([, value]) => value !== "")).toString()}`, signal);
    },
    initialPageParam: null as number | null,
    getNextPageParam: (last) => last.next,
    placeholderData: keepPreviousData,
  });

export const storedTaskQuery = (id: string) =>
  queryOptions({ queryKey: ["store", "task", id], queryFn: ({ signal }) => get<StoredTask>(`/tasks/${inPath(id)}`, signal) });

export const storedAttemptsQuery = (id: string) =>
  queryOptions({
    queryKey: ["store", "task", id, "attempts"],
    queryFn: ({ signal }) => get<{ attempts: StoredAttempt[] }>(`/tasks/${inPath(id)}/attempts`, signal),
    select: (found) => found.attempts,
  });

/** The address of what an attempt wrote, or of something below it. */
export const storedLogPath = (id: string, stream: string, below: string, asked: Record<string, string | number>): string =>
  `/tasks/${inPath(id)}/logs/${stream}${below}?${new URLSearchParams(Object.entries(asked).map(([name, value]) => [name, String(value)])).toString()}`;

const LOG_PART_BYTES = 32 * 1024;
const LOG_MS = 3_000;

/** The part that begins at an offset; null: the end, from a whole line on, asked for again while the task `grows`. */
export const storedLogQuery = (id: string, stream: string, attempt: number, offset: number | null, grows: boolean) =>
  queryOptions({
    queryKey: ["store", "task", id, "log", stream, attempt, offset],
    queryFn: async ({ signal }) => {
      const { bytes, headers } = await getBytes(storedLogPath(id, stream, "", { attempt, limit: LOG_PART_BYTES, ...(offset === null ? {} : { offset }) }), signal);
      const from = Number(headers.get("x-log-offset") ?? 0);
      const text = new TextDecoder().decode(bytes);
      return { text: offset === null && from > 0 ? text.slice(text.indexOf("\n") + 1) : text, offset: from, size: Number(headers.get("x-log-size") ?? bytes.length) };
    },
    refetchInterval: grows ? LOG_MS : false,
    retry: false,
  });

export const storedWhyQuery = (id: string) =>
  queryOptions({
    queryKey: ["store", "task", id, "why"],
    queryFn: ({ signal }) => get<{ reasons: string[] }>(`/tasks/${inPath(id)}/why`, signal),
    select: (found) => found.reasons,
  });

export const workersQuery = (all: boolean) =>
  queryOptions({
    queryKey: ["store", "workers", all],
    queryFn: ({ signal }) => get<{ workers: WorkerFacts[] }>(`/workers${all ? "?all=true" : ""}`, signal),
    select: (found) => found.workers,
    refetchInterval: 5_000,
    placeholderData: keepPreviousData,
  });

export const statisticsQuery = (by: "queue" | "name") =>
  queryOptions({
    queryKey: ["store", "statistics", by],
    queryFn: ({ signal }) => get<{ all: Statistics; groups: Record<string, Statistics> }>(`/statistics?by=${by}`, signal),
    refetchInterval: 30_000,
    placeholderData: keepPreviousData,
  });

/** Newest first; `before` is where a page goes on. */
export const auditQuery = (before: number | null) =>
  queryOptions({
    queryKey: ["store", "audit", before],
    queryFn: ({ signal }) => get<AuditPage>(`/audit?limit=50${before === null ? "" : `&before=${before}`}`, signal),
  });

export const tokensQuery = queryOptions({
  queryKey: ["store", "tokens"],
  queryFn: ({ signal }) => get<{ tokens: TokenFacts[] }>("/tokens", signal),
  select: (found) => found.tokens,
});
