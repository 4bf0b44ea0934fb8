/** What attempts took and used, by the name of their task: figures, over cycles, as a histogram. */
import { comparePoints } from "../../api/points";
import type { RunAttempt } from "../../api/types";
import { BYTES, PERCENT, SECONDS, type Scale } from "../../ui/quantities";

export interface Quantity extends Scale {
  id: string;
  title: string;
  of: (attempt: RunAttempt) => number | null;
  /** What was asked for; null: nothing was, or nothing can be. */
  asked: (attempt: RunAttempt) => number | null;
}

const seconds = (from: string | null, to: string | null): number | null =>
  from === null || to === null ? null : Math.max(0, (Date.parse(to) - Date.parse(from)) / 1_000);
const nothing = (): null => null;
const some = (value: number): number | null => (value > 0 ? value : null);

export const QUANTITIES: readonly [Quantity, ...Quantity[]] = [
  {
    id: "run", title: "Run time", ...SECONDS, asked: nothing,
    // How long a failure took says little about how long the task takes.
    of: (one) => (one.ended_by === "succeed" ? seconds(one.started_at ?? one.claimed_at, one.ended_at) : null),
  },
  { id: "queue", title: "Queue time", ...SECONDS, of: (one) => seconds(one.queued_at, one.started_at ?? one.claimed_at), asked: nothing },
  { id: "memory", title: "Memory", ...BYTES, of: (one) => one.used.memory_bytes, asked: (one) => some(one.asked.memory_bytes) },
  { id: "cpu", title: "CPU", ...PERCENT, of: (one) => one.used.cpu_percent, asked: (one) => some(one.asked.cpu * 100) },
  { id: "gpu", title: "GPU", ...PERCENT, of: (one) => one.used.gpu_percent, asked: (one) => some(one.asked.gpu * 100) },
  { id: "gpu-memory", title: "GPU memory", ...BYTES, of: (one) => one.used.gpu_memory_bytes, asked: nothing },
];

export interface Figures {
  count: number;
  min: number;
  p25: number;
  p50: number;
  p75: number;
  p90: number;
  max: number;
  total: number;
}

export interface NameFigures {
  name: string;
  figures: Figures;
  asked: number | null; // of the last attempt
  /** Attempts that succeeded or failed. */
  ended: number;
  failed: number;
  /** How long attempts ran until they failed, in seconds. */
  failedAfter: Figures;
  values: { point: string; value: number }[];
}

/** By rank, so that each is a value that was seen; as the server's statistics do. */
export function figuresOf(values: readonly number[]): Figures {
  const seen = [...values].sort((a, b) => a - b);
  const at = (part: number) => seen[Math.min(seen.length - 1, Math.floor(part * seen.length))] ?? 0;
  return { count: seen.length, min: at(0), p25: at(0.25), p50: at(0.5), p75: at(0.75), p90: at(0.9), max: at(1), total: seen.reduce((sum, one) => sum + one, 0) };
}

/** Each name of which something is known, or that has failed; the largest in sum first, those without a value after them. */
export function byName(attempts: readonly RunAttempt[], quantity: Quantity): NameFigures[] {
  const names = new Map<string, Omit<NameFigures, "figures" | "failedAfter"> & { failures: number[] }>();
  for (const attempt of attempts) {
    const found = names.get(attempt.name) ?? { name: attempt.name, asked: null, ended: 0, failed: 0, failures: [], values: [] };
    names.set(attempt.name, found);
    const value = quantity.of(attempt);
    if (value !== null) found.values.push({ point: attempt.point, value });
    found.asked = quantity.asked(attempt) ?? found.asked;
    if (attempt.ended_by !== null && !["cancel", "yield"].includes(attempt.ended_by)) found.ended += 1;
    if (attempt.ended_by !== null && !["succeed", "cancel", "yield"].includes(attempt.ended_by)) {
      found.failed += 1;
      const ran = seconds(attempt.started_at ?? attempt.claimed_at, attempt.ended_at);
      if (ran !== null) found.failures.push(ran);
    }
  }
  return [...names.values()]
    .filter((one) => one.values.length > 0 || one.failed > 0)
    .map(({ failures, ...one }) => ({ ...one, figures: figuresOf(one.values.map(({ value }) => value)), failedAfter: figuresOf(failures) }))
    .sort((a, b) => b.figures.total - a.figures.total || b.failed - a.failed || (a.name < b.name ? -1 : 1));
}

/** For each point the middle value, and the largest where it differs. */
export function overPoints(values: NameFigures["values"]): { points: string[]; middle: number[]; largest: number[] } {
  const by = new Map<string, number[]>();
  for (const { point, value } of values) by.set(point, [...(by.get(point) ?? []), value]);
  const points = [...by.keys()].sort(comparePoints);
  const figures = points.map((point) => figuresOf(by.get(point) ?? []));
  return { points, middle: figures.map((one) => one.p50), largest: figures.map((one) => one.max) };
}

/** How many lie in each of some equal pieces: where a piece begins, and how many are in it. */
export function histogram(values: readonly number[], pieces = 20): { width: number; from: number[]; counts: number[] } {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const count = high > low ? Math.min(pieces, Math.max(5, Math.ceil(Math.sqrt(values.length)))) : 1;
  const width = (high - low) / count || Math.max(Math.abs(high) * 0.1, 1e-3);
  const counts = Array.from({ length: count }, () => 0);
  for (const value of values) {
    const place = Math.min(count - 1, Math.floor((value - low) / width));
    counts[place] = (counts[place] ?? 0) + 1;
  }
  return { width, from: counts.map((_, place) => low + place * width), counts };
}
