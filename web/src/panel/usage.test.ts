import { expect, test } from "vitest";
import { usageLines, type UsagePoint } from "./usage";

const point = (attempt: number, second: number, memory: number | null, cpu: number | null = null): UsagePoint => ({
  attempt, at: new Date(1_900_000_000_000 + second * 1_000).toISOString(), memory_bytes: memory, cpu_percent: cpu, gpu_percent: null, gpu_memory_bytes: null,
});

test("the last attempt is shown, and only what was measured", () => {
  const lines = usageLines([point(1, 0, 9e9), point(2, 10, 1e6, 50), point(2, 20, 3e6, 90)]);
  expect(lines.map((one) => [one.name, one.most])).toEqual([["memory", 3e6], ["CPU", 90]]);
  expect(lines[0]?.values.map((one) => one.seconds)).toEqual([0, 10]);
});

test("where nothing was measured there is no line", () => {
  expect(usageLines([])).toEqual([]);
});
