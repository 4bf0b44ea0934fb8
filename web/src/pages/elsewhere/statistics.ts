/** Statistics in the order and the words in which they are shown. */
import type { Statistics } from "../../api/storeTypes";
import { endingOf, SIGNALS } from "../../ui/endings";

export type SortKey = "name" | "attempts" | "success" | "queue" | "queue90" | "run" | "run90" | "memory";

const VALUES: Record<Exclude<SortKey, "name">, (one: Statistics) => number> = {
  attempts: (one) => one.attempts,
  success: (one) => 1 - (one.success_rate ?? 1), // the worst first
  queue: (one) => one.queue_seconds?.p50 ?? -1,
  queue90: (one) => one.queue_seconds?.p90 ?? -1,
  run: (one) => one.run_seconds?.p50 ?? -1,
  run90: (one) => one.run_seconds?.p90 ?? -1,
  memory: (one) => one.memory_used_bytes?.max ?? -1,
};

export function sortedGroups(groups: Record<string, Statistics>, sort: SortKey): [string, Statistics][] {
  const found = Object.entries(groups).sort(([a], [b]) => (a < b ? -1 : 1));
  if (sort === "name") return found;
  const value = VALUES[sort];
  return found.sort(([, a], [, b]) => value(b) - value(a));
}

/** How attempts ended, the good ones first. */
export function endings(ended: Record<string, number>): { word: string; status: string; count: number }[] {
  const place = (signal: string) => (SIGNALS.includes(signal) ? SIGNALS.indexOf(signal) : SIGNALS.length);
  return Object.entries(ended)
    .sort(([a], [b]) => place(a) - place(b))
    .map(([signal, count]) => ({ ...endingOf(signal), count }));
}
