import { expect, test } from "vitest";
import type { StoredTask } from "../../api/storeTypes";
import { nextSort } from "../../ui/SortHead";
import { inTaskOrder } from "./taskOrder";

const task = (id: string, more: Partial<StoredTask> = {}): StoredTask =>
  ({ id, name: null, queue: "q", status: "ready", attempt: 0, owner: null, updated_at: "2026-11-19T20:00:00Z", ...more }) as StoredTask;
const order = (tasks: StoredTask[], sort: string) => inTaskOrder(tasks, sort).map((one) => one.id).join("");

test("tasks are sorted by a column either way, and equal ones stay in their order", () => {
  const all = [task("c", { attempt: 1 }), task("a", { attempt: 3 }), task("b", { attempt: 1 })];
  expect(order(all, "")).toBe("cab");
  expect(order(all, "-attempt")).toBe("acb");
  expect(order(all, "attempt")).toBe("cba");
  expect(order(all, "task")).toBe("abc");
  expect(order(all, "no column")).toBe("cab");
});

test("states follow the life of a task, times are compared as times, and a task without a worker is last either way", () => {
  const all = [task("f", { status: "failed", owner: "w2" }), task("w", { status: "waiting", updated_at: "2026-11-19T21:00:00+02:00" }), task("r", { status: "running", owner: "w1" })];
  expect(order(all, "status")).toBe("wrf");
  expect(order(all, "changed")).toBe("wfr");
  expect(order(all, "worker")).toBe("rfw");
  expect(order(all, "-worker")).toBe("frw");
});

test("a column sorts, then the other way round, then not at all", () => {
  expect(["", "attempt", "-attempt", "task"].map((now) => nextSort(now, "attempt", "desc"))).toEqual(["-attempt", "", "attempt", "-attempt"]);
  expect(["", "task", "-task"].map((now) => nextSort(now, "task", "asc"))).toEqual(["task", "-task", ""]);
});
