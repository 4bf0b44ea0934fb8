import { expect, test } from "vitest";
import type { DryRun } from "../api/types";
import { isWithin } from "./tried";

const tried = (more: Partial<DryRun>): DryRun => ({ status: { before: "running", after: "running" }, changes: [], killed: [], polled: [], ...more }) as DryRun;
const change = (id: string, before: string) => ({ id, flows: [1], before, after: "preparing", in_pool: true, made: [] });

test("what was shown may be done, and less than that", () => {
  const shown = tried({ changes: [change("1/a", "waiting"), change("1/b", "waiting")], killed: ["1/c"] });
  expect(isWithin(shown, shown)).toBe(true);
  expect(isWithin(tried({ changes: [change("1/a", "waiting")] }), shown)).toBe(true);
});

test.each([
  ["another task", tried({ changes: [change("1/z", "waiting")] })],
  ["a task that has run meanwhile", tried({ changes: [change("1/a", "succeeded")] })],
  ["another job that ends", tried({ killed: ["1/d"] })],
  ["a run that ends otherwise", tried({ status: { before: "running", after: "completed" } })],
])("%s was not shown", (_, now) => {
  expect(isWithin(now, tried({ changes: [change("1/a", "waiting")], killed: ["1/c"] }))).toBe(false);
});
