// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RunLive } from "./live";
import type { RunFacts, TaskRow, TaskRows, TaskWords } from "./types";

const words = (id: string, state: string, more: Partial<TaskWords> = {}): TaskWords => {
  const [point = "", name = ""] = id.split("/");
  return { id, point, name, state, remarks: [], flows: [1], submit: 0, in_pool: true, ...more };
};
const row = (id: string, state: string): TaskRow => ({
  ...words(id, state), queued_at: null, started_at: null, ended_at: null, exit_status: null, worker: null,
});
const seen: TaskRows = {
  run: { name: "tide/run1", status: "running", reason: "" } as RunFacts,
  batch: 7, cursor: "c", points: ["1"], points_left_out: 0,
  nodes: { a: { families: [], branch: [], title: "", rank: 0 }, b: { families: ["B"], branch: [], title: "", rank: 1 } },
  tasks: [row("1/a", "running"), row("1/b", "waiting")],
};
const batch = (number: number, tasks: TaskWords[] | null, status = "running") => ({
  event: "run", id: null, data: JSON.stringify({ run: "tide/run1", status, reason: "", batch: number, at: "2026-11-15T21:00:00Z", tasks }),
});

let live: RunLive;
beforeEach(() => {
  vi.useFakeTimers();
  live = new RunLive("tide/run1");
  live.take(seen);
});
afterEach(() => vi.useRealTimers());

test("a batch replaces the tasks that it names, and no others", () => {
  const before = live.row("1/b");
  live.hear(batch(8, [words("1/a", "succeeded", { in_pool: false })]));
  expect(live.row("1/a")?.state).toBe("succeeded");
  expect(live.row("1/b")).toBe(before);
});

test("an older batch than the one that is shown changes nothing", () => {
  live.hear(batch(6, [words("1/a", "waiting")]));
  expect(live.row("1/a")?.state).toBe("running");
});

test("a batch that comes twice does no harm", () => {
  live.hear(batch(8, [words("2/a", "waiting")]));
  live.hear(batch(8, [words("2/a", "waiting")]));
  vi.runAllTimers();
  expect(live.snapshot().rows.map((one) => one.id)).toEqual(["1/a", "1/b", "2/a"]);
  expect(live.snapshot().points).toEqual(["1", "2"]);
});

test("rows stand by point and as in the definition, whenever they came", () => {
  live.hear(batch(8, [words("10/a", "waiting"), words("2/b", "waiting"), words("2/a", "waiting")]));
  vi.runAllTimers();
  expect(live.snapshot().rows.map((one) => one.id)).toEqual(["1/a", "1/b", "2/a", "2/b", "10/a"]);
  expect(live.snapshot().points).toEqual(["1", "2", "10"]);
});

test("many events are told once", () => {
  let told = 0;
  live.subscribe(() => told++);
  for (let number = 8; number < 108; number++) live.hear(batch(number, [words("1/a", "running", { submit: number })]));
  vi.runAllTimers();
  expect(told).toBe(1);
  expect(live.snapshot().batch).toBe(107);
});

test("a task that was never spawned after all is gone", () => {
  live.hear(batch(8, [words("1/b", "future", { in_pool: false })]));
  expect(live.row("1/b")).toBeUndefined();
});

test("steps of a submission bring times and the worker", () => {
  const step = (to: string, from: string | null, signal: string | null, at: string) =>
    live.hear({ event: "task", id: null, data: JSON.stringify({ run: "tide/run1", point: "1", name: "a", submit: 1, to, from, signal, worker: "worker-2", exit_status: signal === "fail" ? 3 : null, at }) });
  step("ready", null, null, "t1");
  step("running", "ready", "claim", "t2");
  expect(live.row("1/a")).toMatchObject({ queued_at: "t1", started_at: "t2", ended_at: null, worker: "worker-2" });
  step("failed", "running", "fail", "t3");
  expect(live.row("1/a")).toMatchObject({ ended_at: "t3", exit_status: 3 });
});

test("a run that is deleted under the viewer is said to be", () => {
  live.hear(batch(9, [], "deleted"));
  expect(live.snapshot().phase).toBe("deleted");
});

test("a deleted run stays deleted, whatever is heard behind it", async () => {
  live.hear(batch(9, [], "deleted"));
  live.hear({ event: "resync", id: null, data: "{}" });
  await vi.runAllTimersAsync();
  expect(live.snapshot().phase).toBe("deleted");
});
