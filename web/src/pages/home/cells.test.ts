import { expect, test } from "vitest";
import type { GridCell } from "../../api/types";
import { globMatcher } from "../../ui/globs";
import { cellCount, cellState, cellText, lateText, pointFilter, pointLabels, teamsOf } from "./cells";

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

const shorts = (...points: string[]) => pointLabels(points, 2026).map(({ heading, short }) => [heading, short]);

test("each day stands above its first point, with a year that is not this one", () => {
  expect(shorts("20261116T0600Z")).toEqual([["16 Nov", "06Z"]]);
  expect(shorts("2025-11-16T06:30+01", "2025-11-16T07:00+01")).toEqual([["16 Nov 2025", "06:30+01"], ["", "07+01"]]);
  expect(shorts("19991231T0600Z", "19991231T1200Z", "20000101T0000Z")).toEqual([["31 Dec 1999", "06Z"], ["", "12Z"], ["1 Jan 2000", "00Z"]]);
});

test("what all points share is left out: the time of daily ones, the day of monthly ones", () => {
  expect(shorts("20261030T12Z", "20261031T12Z", "20261101T12Z")).toEqual([["Oct", "30"], ["", "31"], ["Nov", "1"]]);
  expect(shorts("20261201T00Z", "20270101T00Z")).toEqual([["2026", "Dec"], ["2027", "Jan"]]);
  expect(shorts("20260101T00Z", "20270101T00Z")).toEqual([["", "2026"], ["", "2027"]]);
});

test("points that are no times stay as they are", () => {
  expect(shorts("42", "43")).toEqual([["", "42"], ["", "43"]]);
  expect(shorts("20261316T06Z")).toEqual([["", "20261316T06Z"]]);
});

test("a cell has room for its own letters, and for its part of the heading", () => {
  const letters = (...points: string[]) => pointLabels(points, 2026).map((one) => one.letters);
  expect(letters("1234567", "1")).toEqual([7, 7]);
  expect(letters("20251031T00Z", "20251101T00Z", "20251102T00Z", "20251103T00Z")).toEqual([9, 3, 3, 3]);
});

test("the filter of a point means no other point", () => {
  const fits = globMatcher(pointFilter("1"));
  expect([fits("1"), fits("10"), fits("21")]).toEqual([true, false, false]);
  expect(globMatcher(pointFilter("20261116T0600Z"))("20261116T0600Z")).toBe(true);
});

test("teams are the first parts of names that have several", () => {
  expect(teamsOf([{ workflow: "ocean/tide" }, { workflow: "ocean/wave/deep" }, { workflow: "air/wind" }, { workflow: "alone" }])).toEqual(["air", "ocean"]);
});
