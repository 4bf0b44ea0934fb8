import { expect, test } from "vitest";
import { ASKED_AGAIN, TASK_NAMES, type StoredTask } from "../../api/storeTypes";
import { isOver, jobOf, nextName, taskAgain } from "./again";

const NOTHING = Object.fromEntries(Object.values(ASKED_AGAIN).map((stored) => [stored, null])) as unknown as StoredTask;
const task = (more: Partial<StoredTask>): StoredTask => ({
  ...NOTHING,
  id: "t1", seq: 7, queue: "default", name: "fit", status: "failed", attempt: 2, failures: 2, max_retries: 1, retry: { delays: [3] }, priority: 50, command: "true", spec: { a: 1 }, armed: false, max_termination_seconds: 30,
  resources: { cpu: 2, memory_bytes: 0, gpu: 0, labels: [], nodes: 1, exclusive: false, buffer_bytes: 0, flavours: [] }, ...more,
});

test("a task again asks for the same and has an id, times and needs of its own", () => {
  expect(taskAgain(task({}))).toEqual({ queue: "default", name: "fit", command: "true", priority: 50, retries: 1, retry_delays: [3], max_termination: 30, cpu: 2, spec: { a: 1 } });
});

test("a task again has every name that it had", () => {
  const names = Object.fromEntries(TASK_NAMES.map((name) => [name, `its ${name}`]));
  expect(taskAgain(task(names))).toMatchObject(names);
});

test("a task again asks for the same nodes and buffer", () => {
  const resources = { cpu: 0, memory_bytes: 0, gpu: 0, labels: [], nodes: 3, exclusive: true, buffer_bytes: 7, flavours: [] };
  expect(taskAgain(task({ resources }))).toMatchObject({ nodes: 3, exclusive: true, buffer: 7 });
});

test("a name is counted on", () => {
  expect(["fit", "fit.2", "fit.9", "v1.x", ".3"].map(nextName)).toEqual(["fit.2", "fit.3", "fit.10", "v1.x.2", ".4"]);
  expect(taskAgain(task({}), "fit.2")).toMatchObject({ name: "fit.2" });
});

test("a spec that came as a text goes as one", () => {
  expect(taskAgain(task({ spec_text: "1e400" }))).toMatchObject({ spec_text: "1e400" });
  expect(taskAgain(task({ spec_text: "1e400" }))).not.toHaveProperty("spec");
});

test("a job of a run leads to its task, whatever the run is called", () => {
  expect(jobOf({ id: "a/run1/20260101T00Z/fit/2", queue: "run:a/run1" })).toEqual({ run: "a/run1", id: "20260101T00Z/fit" });
  expect(jobOf({ id: "a/b/c/1", queue: "default" })).toBeNull();
});

test("only what has ended is over", () => {
  expect(["ready", "cancelling", "failed", "cancelled"].map((status) => isOver({ status }))).toEqual([false, false, true, true]);
});
