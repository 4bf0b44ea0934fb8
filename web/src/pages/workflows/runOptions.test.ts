import { expect, test } from "vitest";
import { Problem } from "../../api/http";
import { NO_OPTIONS, optionsOf, refusalOf, wrongOption } from "./runOptions";

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
