import { expect, test } from "vitest";
import type { RunFacts, RunSummary } from "../api/types";
import { causeOf, inOrder, isAbandoned, isPossible, progress, progressText, secondsLeft, tookSeconds, usualSeconds, withDriver } from "./runOrder";

const run = (name: string, status: string, more: Partial<RunFacts> = {}): RunFacts =>
  ({ name, status, driven: true, offered: true, updated_at: "2026", ...more }) as RunFacts;
const summary = (of: RunFacts, more: Partial<RunSummary> = {}): RunSummary =>
  ({ run: of, tasks: 10, total: 20, done: 5, causes_count: 0, points: { known: 2, oldest: "1", newest: "2", final: "4", to_come: 2 }, ...more }) as RunSummary;

test("what needs somebody comes first", () => {
  const runs = [run("done", "completed"), run("fine", "running"), run("blocked", "running"), run("lonely", "running", { driven: false, offered: false }), run("stuck", "stalled"), run("broken", "error")];
  const summaries = new Map([["blocked", summary(run("blocked", "running"), { causes_count: 1 })]]);
  expect(inOrder(runs, summaries).map((one) => one.name)).toEqual(["broken", "stuck", "lonely", "blocked", "fine", "done"]);
});

test("a run is abandoned if those who know say so, and not because they know it a little later", () => {
  const told = run("tide", "running");
  expect(isAbandoned(withDriver(told, undefined))).toBe(false);
  expect(isAbandoned(withDriver(told, run("tide", "running", { driven: false, offered: false })))).toBe(true);
  // It was stopped, and has just begun again.
  expect(isAbandoned(withDriver({ ...told, driven: false, offered: false }, run("tide", "stopped", { driven: false, offered: false })))).toBe(false);
});

test("a stalled run whose stall timeout has passed can be continued, one that has a scheduler cannot", () => {
  expect(isPossible("run", run("tide", "stalled", { driven: false, offered: false }))).toBe(true);
  expect(isPossible("run", run("tide", "stalled", { driven: false, offered: true }))).toBe(false);
  expect(isPossible("run", run("tide", "stalled"))).toBe(false);
});

test("progress counts points that have not begun, and is unknown without an end", () => {
  const fine = run("fine", "running");
  expect(progress(summary(fine))).toBe(0.25);
  expect(progressText(summary(fine))).toBe("5 of 20 tasks done · 25 %");
  expect(progress(summary(fine, { total: null }))).toBeNull();
  expect(progressText(summary(fine, { total: null }))).toBe("5 of 10 tasks done");
  expect(progressText(summary(run("done", "completed"), { done: 10 }))).toBe("10 of 10 tasks done · 100 %");
});

test("a run that completed with tasks that failed or are lost is not wholly done", () => {
  expect(progressText(summary(run("done", "completed")))).toBe("5 of 10 tasks done · 50 %");
});

test("what is left follows from earlier runs of the same workflow", () => {
  const past = (number: number, workflow: string, seconds: number, status = "completed") =>
    run(`${workflow}/run${number}`, status, { number, workflow, created_at: "2026-01-01T00:00:00Z", ended_at: new Date(Date.parse("2026-01-01T00:00:00Z") + seconds * 1_000).toISOString() });
  const now = run("tide/run9", "running", { number: 9, workflow: "tide", created_at: "2026-02-01T00:00:00Z", ended_at: null });
  const runs = [past(1, "tide", 10), past(2, "tide", 60), past(3, "tide", 500), past(4, "tide", 1, "stopped"), past(5, "ebb", 1), now];
  const usual = usualSeconds(runs).get("tide") ?? null;
  expect(usual).toBe(60);
  const at = Date.parse("2026-02-01T00:00:20Z");
  expect(secondsLeft(now, usual, at)).toBe(40);
  expect(secondsLeft(now, usual, at + 60_000)).toBeNull();
  expect(secondsLeft({ ...now, status: "stalled" }, usual, at)).toBeNull();
  expect(secondsLeft({ ...now, driven: false, offered: false }, usual, at)).toBeNull();
  expect([...usualSeconds(runs).keys()].sort()).toEqual(["ebb", "tide"]);
  expect(runs.map(tookSeconds)).toEqual([10, 60, 500, 1, 1, null]);
});

test("a cause is what failed, how, and who waits for it; others are counted", () => {
  const group = { text: "1/a failed (exit 3): CFL violated; 1 task waits for it", count: 1, name: "a", state: "failed", end: "exit 3", error: "", waiting: 1, log: "1/a", ids: ["1/a"], commands: [], actions: [] };
  const cause = { id: "2/b", state: "waiting", remarks: [], reasons: [{ text: "2/b waits for data", passes: false, needs_action: true, until: null, commands: [], actions: [] }] };
  expect(causeOf({ groups: [group], causes: [cause], causes_count: 2 })).toEqual({ id: "1/a", title: "1/a", text: " failed (exit 3): CFL violated; 1 task waits for it, and 1 more" });
  expect(causeOf({ groups: [{ ...group, text: "24 failed alike: exit 3", count: 24 }], causes: [], causes_count: 24 })).toEqual({ id: "1/a", title: "24 failed alike: exit 3", text: "" });
  expect(causeOf({ groups: [], causes: [cause], causes_count: 1 })).toEqual({ id: "2/b", title: "2/b", text: " waits for data" });
  expect(causeOf({ groups: [], causes: [], causes_count: 0 })).toBeNull();
});
