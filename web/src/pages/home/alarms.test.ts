import { expect, test } from "vitest";
import type { GridRun } from "../../api/types";
import { alarmText, newAlarms } from "./alarms";

const run = (number: number, status: string, rest: Partial<GridRun> = {}): GridRun => ({ number, status, name: `w/run${number}`, reason: "", cause: null, ...rest }) as GridRun;

test("only what has stalled or failed since the last look is told", () => {
  expect(newAlarms(null, [run(1, "stalled")])).toEqual([]);
  const before = new Map([[1, "stalled"], [2, "running"]]);
  const found = newAlarms(before, [run(1, "stalled"), run(2, "stalled"), run(3, "error"), run(4, "running")]);
  expect(found.map((one) => one.number)).toEqual([2, 3]);
});

test("a notification shows what people wrote as plain text", () => {
  const cause = { id: "1/a\u202e", state: "failed", more: 2 };
  expect(alarmText(run(1, "stalled", { cause }))).toBe("1/a⟦U+202E⟧ failed, and 2 more");
});
