import { expect, test } from "vitest";
import { withBound, withPoint } from "../../acting/Bounds";
import type { DryRun } from "../../api/types";
import { markText, previewOf } from "./preview";

const TRIED = {
  tasks: [{ id: "1/a", state: "failed" }],
  runs: [{ id: "1/a" }, { id: "1/b" }, { id: "1/a" }],
  waits: [{ id: "1/c", reasons: [] }],
} as unknown as DryRun;

test("what would run is numbered in its order, each task once", () => {
  const { marks, picking } = previewOf({ verb: "trigger", ids: ["1/a"] }, TRIED);
  expect(marks.get("1/a")).toMatchObject({ order: 1, begins: true });
  expect(marks.get("1/b")).toMatchObject({ order: 2, begins: false });
  expect(marks.get("1/c")).toMatchObject({ order: null, waits: true });
  expect(picking).toBe(false);
});

test("bounds are clicked on and off, never on what begins the flow", () => {
  const reflow = { verb: "trigger", ids: ["1/a"], flow: "new" };
  const bound = withPoint(withBound(reflow, "1/b"), "3");
  expect(bound).toEqual({ ...reflow, until_tasks: ["1/b"], until: "3" });
  const { marks, picking, until } = previewOf(bound, undefined);
  expect([picking, until, marks.get("1/b")?.ends]).toEqual([true, "3", true]);
  expect(withPoint(withBound(bound, "1/b"), "3")).toEqual(reflow);
  expect(withBound(reflow, "1/a")).toEqual(reflow);
});

test("a mark has words", () => {
  expect(markText(previewOf({ verb: "trigger", ids: ["1/a"] }, TRIED).marks.get("1/b"))).toBe("would run, number 2");
  expect(markText(undefined)).toBe("");
});
