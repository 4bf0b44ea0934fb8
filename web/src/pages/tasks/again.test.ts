import { expect, test } from "vitest";
import type { Resubmitted } from "../../api/storeTypes";
import { againOf, isOver, jobOf, planOf } from "./again";

const answer = (more: Partial<Resubmitted>): Resubmitted => ({ again_of: "a", id: "a~2-1", created: true, queue: "q", name: null, needs: [], children: [], refused: null, ...more });

test("what would happen is told apart: made, there before, refused", () => {
  const plan = planOf([answer({ children: ["x", "y"] }), answer({ created: false, children: ["y"] }), answer({ id: null, created: false, refused: "no" })]);
  expect([plan.made.length, plan.before.length, plan.refused.length, plan.children]).toEqual([1, 1, 1, 2]);
});

test("the id of a task that was submitted again says which one was the first", () => {
  expect(againOf("fit~3-0123456789ab")).toEqual({ first: "fit", number: 3 });
  expect(againOf("fit~3")).toBeNull();
});

test("a job of a run leads to its task, whatever the run is called", () => {
  expect(jobOf({ id: "a/run1/20260101T00Z/fit/2", queue: "run:a/run1" })).toEqual({ run: "a/run1", id: "20260101T00Z/fit" });
  expect(jobOf({ id: "a/b/c/1", queue: "default" })).toBeNull();
});

test("only what has ended is over", () => {
  expect(["ready", "cancelling", "failed", "cancelled"].map((status) => isOver({ status }))).toEqual([false, false, true, true]);
});
