import { expect, test } from "vitest";
import { limitsOf, limitTexts, NO_LIMIT, wrongIn } from "./queueSettings";

test("the limit of the whole queue comes first, and what is empty is no limit", () => {
  const rows = limitTexts({ limits: [{ key: "gpu", concurrency_max: 2, rate_max: null, rate_seconds: 1 }] });
  expect(rows.map((row) => [row.key, row.most])).toEqual([["", ""], ["gpu", "2"]]);
  expect(limitsOf(rows)).toEqual([{ key: "gpu", concurrency_max: 2, rate_max: null, rate_seconds: 1 }]);
});

test("a mistake is told at its field", () => {
  expect(wrongIn({ ...NO_LIMIT, most: "many", rate: "3", seconds: "0" }, true)).toEqual({ most: "Give a whole number, 0 or more; empty: no limit.", seconds: "Give a number of seconds greater than 0." });
  expect(wrongIn({ ...NO_LIMIT, most: "3" }, false)).toHaveProperty("key");
  expect(wrongIn(NO_LIMIT, false)).toEqual({});
});
