import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readFilter } from "./globs";

type Case = [string, string, string];
const path = new URL("../../../tests/unit/filter_cases.json", import.meta.url);
const cases = JSON.parse(readFileSync(path, "utf8")) as { states: string[]; fits: Case[]; not: Case[]; refused: string[] };

test.each(cases.fits)("%s means %s that is %s, here and on the command line", (text, name, state) => {
  expect(readFilter(text, cases.states).fits([name], [state])).toBe(true);
});
test.each(cases.not)("%s does not mean %s that is %s", (text, name, state) => {
  const filter = readFilter(text, cases.states);
  expect(filter.problem).toBe("");
  expect(filter.fits([name], [state])).toBe(false);
});
test.each(cases.refused)("%s names a state that there is not, and says which there are", (text) => {
  expect(readFilter(text, cases.states).problem).toContain("the states are waiting, ready");
});
test("a filter without end is not read", () => {
  expect(readFilter("*a".repeat(101)).problem).toContain("200");
});
