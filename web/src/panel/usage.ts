/** What a job used over time, as lines to draw. */
import { BYTES, PERCENT, type Scale } from "../ui/quantities";

export interface UsagePoint {
  attempt: number;
  at: string | null;
  memory_bytes: number | null;
  cpu_percent: number | null;
  gpu_percent: number | null;
  gpu_memory_bytes: number | null;
}

export interface UsageLine {
  name: string;
  values: { seconds: number; value: number }[];
  most: number;
  scale: Scale;
}

const MEASURES = [
  ["memory", (one: UsagePoint) => one.memory_bytes, BYTES],
  ["CPU", (one: UsagePoint) => one.cpu_percent, PERCENT],
  ["GPU", (one: UsagePoint) => one.gpu_percent, PERCENT],
  ["GPU memory", (one: UsagePoint) => one.gpu_memory_bytes, BYTES],
] as const;

/** One line for each measure that was taken, of the last attempt that has any. */
export function usageLines(usage: readonly UsagePoint[]): UsageLine[] {
  const last = Math.max(...usage.map((one) => one.attempt));
  const points = usage.filter((one) => one.attempt === last && one.at !== null).map((one) => ({ one, time: Date.parse(one.at ?? "") }));
  const begin = Math.min(...points.map(({ time }) => time));
  return MEASURES.flatMap(([name, of, scale]) => {
    const values = points.flatMap(({ one, time }) => {
      const value = of(one);
      return value === null ? [] : [{ seconds: (time - begin) / 1_000, value }];
    });
    return values.length === 0 ? [] : [{ name, values, scale, most: Math.max(...values.map((point) => point.value)) }];
  });
}
