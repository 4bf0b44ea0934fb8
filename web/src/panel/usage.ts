/** What a job used over time, as lines to draw. */
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
  text: (value: number) => string;
}

export function bytesText(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const place = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  return `${(bytes / 1_000 ** place).toFixed(place === 0 ? 0 : 1)} ${units[place] ?? ""}`;
}

const MEASURES = [
  ["memory", (one: UsagePoint) => one.memory_bytes, bytesText],
  ["CPU", (one: UsagePoint) => one.cpu_percent, (value: number) => `${Math.round(value)} %`],
  ["GPU", (one: UsagePoint) => one.gpu_percent, (value: number) => `${Math.round(value)} %`],
  ["GPU memory", (one: UsagePoint) => one.gpu_memory_bytes, bytesText],
] as const;

/** One line for each measure that was taken, of the last attempt that has any. */
export function usageLines(usage: readonly UsagePoint[]): UsageLine[] {
  const last = Math.max(...usage.map((one) => one.attempt));
  const points = usage.filter((one) => one.attempt === last && one.at !== null).map((one) => ({ one, time: Date.parse(one.at ?? "") }));
  const begin = Math.min(...points.map(({ time }) => time));
  return MEASURES.flatMap(([name, of, text]) => {
    const values = points.flatMap(({ one, time }) => {
      const value = of(one);
      return value === null ? [] : [{ seconds: (time - begin) / 1_000, value }];
    });
    return values.length === 0 ? [] : [{ name, values, text, most: Math.max(...values.map((point) => point.value)) }];
  });
}

/** An SVG path through the values; more than there are pixels are thinned, peaks are kept. */
export function linePath({ values, most }: Pick<UsageLine, "values" | "most">, width: number, height: number): string {
  const end = values.at(-1)?.seconds ?? 0;
  const columns = new Map<number, number>();
  for (const { seconds, value } of values) {
    const x = Math.round(end <= 0 ? 0 : (seconds / end) * width);
    columns.set(x, Math.max(columns.get(x) ?? 0, value));
  }
  const points = [...columns].sort(([a], [b]) => a - b).map(([x, value]) => `${x} ${(height - (most <= 0 ? 0 : value / most) * (height - 2) - 1).toFixed(1)}`);
  return points.length === 1 ? `M0 ${points[0]?.split(" ")[1] ?? 0}H${width}` : `M${points.join("L")}`;
}
