import { expect, test } from "vitest";
import { Problem } from "../../api/http";
import { NO_OPTIONS, optionsOf, pointsOf, rangeText, refusalOf, wrongOption } from "./runOptions";

test("only what was said is sent", () => {
  expect(optionsOf(NO_OPTIONS)).toEqual({});
  expect(optionsOf({ ...NO_OPTIONS, initial: " 2026 ", priority: "7", paused: true, mode: "simulation" })).toEqual({ initial: "2026", priority: 7, paused: true, mode: "simulation" });
});

test("a priority out of bounds is told at its field", () => {
  expect(wrongOption("priority", { ...NO_OPTIONS, priority: "101" })).toBe("Give a whole number from -1 to 100.");
  expect(wrongOption("priority", { ...NO_OPTIONS, priority: "-1" })).toBe("");
});

test("a refusal stands at the field whose text it quotes", () => {
  const problem = new Problem(400, "bad_setting", "initial cycle point is 'soon'; accepted is a date");
  expect(refusalOf("initial", "soon", problem)).toContain("soon");
  expect(refusalOf("final", "2027", problem)).toBe("");
});

test("points are asked about only if one was said, and what they give is counted in words", () => {
  expect(pointsOf(NO_OPTIONS)).toBeNull();
  expect(pointsOf({ ...NO_OPTIONS, final: " 6 " })).toEqual({ final: "6" });
  const range = { first: "3", last: "6", points: 4, tasks: { a: 4, b: 1 }, cut: false };
  expect(rangeText(range)).toBe("4 points, from 3 to 6: 5 tasks");
  expect(rangeText({ ...range, cut: true })).toBe("more than 4 points, from 3 to 6: more than 5 tasks");
  expect(rangeText({ ...range, tasks: {}, points: 0 })).toContain("would do nothing");
  expect(rangeText({ ...range, last: null })).toContain("no end");
});
