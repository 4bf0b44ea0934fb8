import { expect, test } from "vitest";
import { bytesText, linePath, usageLines, type UsagePoint } from "./usage";

const point = (attempt: number, second: number, memory: number | null, cpu: number | null = null): UsagePoint => ({
  attempt, at: new Date(1_900_000_000_000 + second * 1_000).toISOString(), memory_bytes: memory, cpu_percent: cpu, gpu_percent: null, gpu_memory_bytes: null,
});

test("the last attempt is shown, and only what was measured", () => {
  const lines = usageLines([point(1, 0, 9e9), point(2, 10, 1e6, 50), point(2, 20, 3e6, 90)]);
  expect(lines.map((one) => [one.name, one.most])).toEqual([["memory", 3e6], ["CPU", 90]]);
  expect(lines[0]?.values.map((one) => one.seconds)).toEqual([0, 10]);
});

test("a path fits its box, and a peak among thousands is seen", () => {
  const values = Array.from({ length: 5_000 }, (_, second) => ({ seconds: second, value: second === 2_500 ? 100 : 1 }));
  const path = linePath({ values, most: 100 }, 200, 40);
  expect(path.split("L").length).toBeLessThanOrEqual(201);
  expect(path).toContain("100 1.0");
});

test("one value is a level line; none breaks nothing", () => {
  expect(linePath({ values: [{ seconds: 0, value: 5 }], most: 5 }, 100, 40)).toBe("M0 1.0H100");
  expect(usageLines([])).toEqual([]);
});

test("bytes are written as people read them", () => {
  expect([0, 999, 1_500, 2_340_000_000].map(bytesText)).toEqual(["0 B", "999 B", "1.5 kB", "2.3 GB"]);
});
