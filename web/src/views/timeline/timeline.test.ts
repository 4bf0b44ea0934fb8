import { expect, test } from "vitest";
import type { RunAttempt } from "../../api/types";
import { barsAt, outcomeOf, panned, placed, ticksOf, timeRows, wholeSpan, zoomed } from "./timeline";

const at = (seconds: number) => new Date(1_800_000_000_000 + seconds * 1_000).toISOString();
const attempt = (id: string, queued: number, started: number | null, ended: number | null, more: Partial<RunAttempt> = {}): RunAttempt => {
  const [point = "", name = ""] = id.split("/");
  return {
    id, point, name, submit: 1, attempt: 1, task: `run/${id}/1`, worker: null, queued_at: at(queued), claimed_at: started === null ? null : at(started),
    started_at: started === null ? null : at(started), ended_at: ended === null ? null : at(ended), ended_by: ended === null ? null : "succeed", exit_status: null,
    asked: { cpu: 0, memory_bytes: 0, gpu: 0 }, used: { memory_bytes: null, cpu_percent: null, gpu_percent: null, gpu_memory_bytes: null }, ...more,
  };
};
const SOME = [attempt("1/b", 5, 6, 9), attempt("1/a", 0, 1, 5), attempt("2/a", 9, null, null)];

test("tasks are rows in the order in which they were queued, or names with all their points", () => {
  const rows = timeRows(SOME, new Set(["run/1/b/1"]), "task");
  expect(rows.map((row) => [row.label, row.outcome, row.critical])).toEqual([["1/a", "succeeded", false], ["1/b", "succeeded", true], ["2/a", "ready", false]]);
  expect(timeRows(SOME, new Set(), "name").map((row) => [row.label, row.bars.length])).toEqual([["a", 2], ["b", 1]]);
});

test("what ended in any other way than well has failed, unless it was cancelled or given back", () => {
  const ended = (by: string) => outcomeOf(attempt("1/a", 0, 1, 2, { ended_by: by }));
  expect(["succeed", "retry", "lapse out", "cancel", "yield"].map(ended)).toEqual(["succeeded", "failed", "failed", "cancelled", "cancelled"]);
  expect(outcomeOf(attempt("1/a", 0, 1, null))).toBe("running");
});

test("the whole is from the first bar to the last, and to now while it goes on", () => {
  const rows = timeRows(SOME.slice(0, 2), new Set(), "task");
  const over = wholeSpan(rows, Date.parse(at(100)), false);
  expect(over.to).toBeLessThan(Date.parse(at(11)));
  expect(wholeSpan(rows, Date.parse(at(100)), true).to).toBeGreaterThanOrEqual(Date.parse(at(100)));
});

test("zooming keeps what is under the pointer, and nothing lies beyond the whole", () => {
  const whole = { from: 0, to: 10_000 };
  expect(zoomed(whole, 0.5, 0.5, whole)).toEqual({ from: 2_500, to: 7_500 });
  expect(zoomed({ from: 0, to: 5_000 }, 9, 0.5, whole)).toEqual(whole);
  expect(panned({ from: 6_000, to: 9_000 }, 1, whole)).toEqual({ from: 7_000, to: 10_000 });
});

test("ticks are round and not too many", () => {
  const found = ticksOf({ from: Date.parse(at(0)), to: Date.parse(at(60)) }, 600);
  expect(found.length).toBeGreaterThan(3);
  expect(found.length).toBeLessThan(8);
  expect(found.every((tick) => tick.at % 10_000 === 0)).toBe(true);
});

test("bars are cut at the edges and left out beyond them", () => {
  const span = { from: 1_000, to: 2_000 };
  expect(placed(0, 900, span, 100)).toBeNull();
  expect(placed(1_500, 9_000, span, 100)).toEqual({ left: 50, width: 52 });
  expect(placed(1_500, 1_500, span, 100)?.width).toBe(2);
});

test("zooming goes to where the bars on the screen are, and to the middle where there are none", () => {
  const bar = { queuedAt: 80, startedAt: 82, endedAt: 90 };
  const rows = [{ bars: [bar] }] as unknown as Parameters<typeof barsAt>[0];
  expect(barsAt(rows, { from: 0, to: 100 }, 100)).toBeCloseTo(0.85);
  expect(barsAt(rows, { from: 0, to: 50 }, 100)).toBe(0.5);
});
