import { expect, test } from "vitest";
import { clockText, durationText } from "./time";

test("no minute has sixty seconds, and no second ten tenths", () => {
  expect([119.7, 59.6, 9.97, 3_599.9, 61].map(durationText)).toEqual(["2 min", "1 min", "10 s", "1 h", "1 min 1 s"]);
  expect([0, 0.004, 0.25, 9.9, 59.4].map(durationText)).toEqual(["0 s", "4 ms", "0.3 s", "9.9 s", "59 s"]);
});

test("a time of another year says so", () => {
  const today = new Date(2026, 10, 16, 4, 0, 0);
  expect(clockText(new Date(2026, 10, 16, 3, 59, 1), today)).toBe("03:59:01");
  expect(clockText(new Date(2026, 1, 3, 3, 59, 1), today)).not.toContain("2026");
  expect(clockText(new Date(2025, 10, 16, 3, 59, 1), today)).toContain("2025");
});
