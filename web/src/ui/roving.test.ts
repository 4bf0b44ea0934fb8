import { expect, test } from "vitest";
import { stepIn } from "./roving";

test("arrows stay within a list, Home and End lead to its ends", () => {
  expect(stepIn("ArrowDown", -1, 3)).toBe(0);
  expect(stepIn("ArrowDown", 2, 3)).toBe(2);
  expect(stepIn("ArrowUp", 0, 3)).toBe(0);
  expect(stepIn("PageDown", 0, 40)).toBe(15);
  expect(stepIn("End", 0, 40)).toBe(39);
  expect(stepIn("Home", 7, 40)).toBe(0);
  expect(stepIn("x", 7, 40)).toBeNull();
  expect(stepIn("End", 0, 0)).toBeNull();
});
