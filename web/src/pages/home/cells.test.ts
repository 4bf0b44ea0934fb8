import { expect, test } from "vitest";
import type { GridCell } from "../../api/types";
import { globMatcher } from "../../ui/globs";
import { cellCount, cellState, cellText, headings, lateText, pointFilter, shortPoint, teamsOf } from "./cells";

const cell = (counts: Record<string, number>, incomplete = 0, point = "1"): GridCell => ({
  point,
  counts,
  tasks: Object.values(counts).reduce((sum, one) => sum + one, 0),
  incomplete,
});

test("a cell shows what needs action before what goes on, and that before what is over", () => {
  expect(cellState(cell({ failed: 1, running: 3, succeeded: 9 }, 1))).toBe("failed");
  expect(cellState(cell({ failed: 1, running: 3, succeeded: 9 }))).toBe("running");
  expect(cellState(cell({ succeeded: 2, waiting: 1 }))).toBe("waiting");
  expect(cellState(cell({ succeeded: 2 }))).toBe("succeeded");
  expect(cellState(cell({ "not taken": 2 }))).toBe("not taken");
});

test("a cell says what is late and when the next task is", () => {
  expect(lateText(cell({ running: 1 }))).toBe("");
  expect(lateText({ due: "2030-01-02T07:45:00Z" })).toBe("due 2030-01-02 07:45Z");
  expect(lateText({ due: `${new Date().toISOString().slice(0, 10)}T07:45:00.250Z` })).toBe("due 07:45Z");
  expect(cellText({ ...cell({ running: 2, waiting: 1 }), late: 2, due: "2030-01-02T07:45:00Z" }, false)).toBe("1: 2 running, 1 waiting, 2 late, next due 2030-01-02 07:45Z");
});

test("a point that is over with a failure that was handled is neither an alarm nor all well", () => {
  const over = cell({ failed: 2, lost: 1, succeeded: 9 });
  expect([cellState(over), cellCount(over)]).toEqual(["lost", 3]);
});

test("a task that succeeded and is incomplete needs action", () => {
  const one = cell({ succeeded: 1 }, 1);
  expect([cellState(one), cellCount(one), cellText(one, false)]).toEqual(["failed", 1, "1: 1 succeeded, 1 needs action"]);
});

test("a point is read below the heading of its day", () => {
  expect(shortPoint("20261116T0600Z", 2026)).toEqual({ heading: "16 Nov", short: "06Z" });
  expect(shortPoint("2026-11-16T06:30+01", 2027)).toEqual({ heading: "16 Nov 2026", short: "06:30+01" });
  expect(shortPoint("20261316T06Z").heading).toBe("");
  expect(shortPoint("42")).toEqual({ heading: "", short: "42" });
});

test("each day stands above its first point", () => {
  const points = ["19991231T0600Z", "19991231T1200Z", "20000101T0000Z"];
  expect(headings(points.map((point) => cell({}, 0, point)))).toEqual(["31 Dec 1999", "", "1 Jan 2000"]);
});

test("the filter of a point means no other point", () => {
  const fits = globMatcher(pointFilter("1"));
  expect([fits("1"), fits("10"), fits("21")]).toEqual([true, false, false]);
  expect(globMatcher(pointFilter("20261116T0600Z"))("20261116T0600Z")).toBe(true);
});

test("teams are the first parts of names that have several", () => {
  expect(teamsOf([{ workflow: "ocean/tide" }, { workflow: "ocean/wave/deep" }, { workflow: "air/wind" }, { workflow: "alone" }])).toEqual(["air", "ocean"]);
});
