import { expect, test } from "vitest";
import type { RunFacts, RunSummary } from "../api/types";
import { inOrder, progress } from "./runOrder";

const run = (name: string, status: string, more: Partial<RunFacts> = {}): RunFacts =>
  ({ name, status, driven: true, offered: true, updated_at: "2026", ...more }) as RunFacts;
const summary = (of: RunFacts, more: Partial<RunSummary> = {}): RunSummary =>
  ({ run: of, tasks: 10, done: 5, causes_count: 0, points: { known: 2, oldest: "1", newest: "2", final: "4", to_come: 2 }, ...more }) as RunSummary;

test("what needs somebody comes first", () => {
  const runs = [run("done", "completed"), run("fine", "running"), run("blocked", "running"), run("lonely", "running", { driven: false, offered: false }), run("stuck", "stalled"), run("broken", "error")];
  const summaries = new Map([["blocked", summary(run("blocked", "running"), { causes_count: 1 })]]);
  expect(inOrder(runs, summaries).map((one) => one.name)).toEqual(["broken", "stuck", "lonely", "blocked", "fine", "done"]);
});

test("progress counts points that have not begun, and is unknown without an end", () => {
  const fine = run("fine", "running");
  expect(progress(summary(fine))).toBe(0.25);
  expect(progress(summary(fine, { points: { known: 2, oldest: "1", newest: "2", final: null, to_come: null } }))).toBeNull();
  expect(progress(summary(run("done", "completed")))).toBe(1);
});
