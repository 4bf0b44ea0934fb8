import { expect, test } from "vitest";
import type { NodeFacts, Submission, TaskRow } from "../../api/types";
import { flatten, growTree, isOpenByItself, stepOf, triesOf, type Branch, type Leaf } from "./tree";

const row = (id: string, state: string, submit = 1): TaskRow => {
  const [point = "", name = ""] = id.split("/");
  return { id, point, name, state, submit, remarks: [], flows: [1], in_pool: true, queued_at: null, started_at: null, ended_at: null, exit_status: null, worker: null };
};
const node = (branch: string[]): NodeFacts => ({ families: [...branch].reverse(), branch, title: "", rank: 0 });
const NODES = { prep: node([]), tide: node(["MODELS", "SEA"]), wave: node(["MODELS", "SEA"]), wind: node(["MODELS"]) };
const TREE = growTree([row("1/prep", "succeeded"), row("1/tide", "failed"), row("1/wave", "succeeded"), row("1/wind", "running"), row("2/prep", "succeeded")], NODES);
const texts = (tree: Branch[], open: (item: Branch | Leaf) => boolean) =>
  flatten(tree, open, () => null).map((line) => `${" ".repeat(line.depth)}${line.of.kind === "task" ? line.of.row.name : "name" in line.of ? line.of.name : "…"}`);

test("tasks hang in their families, families in one another, and each counts what is below", () => {
  expect(texts(TREE, (item) => item.kind !== "task")).toEqual(["1", " prep", " MODELS", "  SEA", "   tide", "   wave", "  wind", "2", " prep"]);
  expect(TREE[0]?.counts).toEqual({ succeeded: 2, failed: 1, running: 1 });
  const models = TREE[0]?.children[1] as Branch;
  expect([models.tasks, models.counts]).toEqual([3, { failed: 1, succeeded: 1, running: 1 }]);
});

test("a point where everything is done is closed by itself", () => {
  expect(texts(TREE, isOpenByItself).at(-1)).toBe("2");
});

test("a task that was never submitted has nothing below", () => {
  const tree = growTree([row("1/prep", "waiting", 0)], NODES);
  expect(flatten(tree, () => true, () => null).map((line) => line.open)).toEqual([true, null]);
});

test("arrows open, close and move as in any tree", () => {
  const lines = flatten(TREE, isOpenByItself, () => null);
  expect(stepOf("ArrowDown", lines, null)).toEqual({ active: "1" });
  expect(stepOf("ArrowLeft", lines, "1")).toEqual({ toggle: "1" });
  expect(stepOf("ArrowRight", lines, "2")).toEqual({ toggle: "2" });
  expect(stepOf("ArrowLeft", lines, "task 1/tide")).toEqual({ active: "1/MODELS/SEA" });
  expect(stepOf("ArrowRight", lines, "task 1/tide")).toEqual({ toggle: "task 1/tide" });
  expect(stepOf("End", lines, "1")).toEqual({ active: "2" });
  expect(stepOf("x", lines, "1")).toBeNull();
});

test("a submission that was tried twice has a line for each attempt, the newest first", () => {
  const attempt = (number: number, ended_by: string | null) => ({ attempt: number, worker: `w${number}`, claimed_at: "a", started_at: "b", ended_at: null, ended_by, exit_status: null, error: null, logs: [] });
  const one: Submission = { submit: 1, task: "t", status: "running", submitted_at: "a", started_at: null, ended_at: null, exit_status: null, error: null, worker: "w2", folder: "f", values: null, attempts: [attempt(1, "lapse"), attempt(2, null)], messages: [] };
  expect(triesOf([one]).map((found) => [found.text, found.status])).toEqual([["#1, attempt 2", "running"], ["#1, attempt 1", "lapse"]]);
});
