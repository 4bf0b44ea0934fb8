import { expect, test } from "vitest";
import { lastPoints, middleOf } from "./useGraph";

const rows = (point: string, count: number, in_pool = false) => Array.from({ length: count }, () => ({ point, in_pool }));

test("of a run that is over the last points are shown, as many as can be read", () => {
  expect(lastPoints([...rows("1", 8), ...rows("2", 8)])).toBe("2/*,1/*");
  expect(lastPoints([...rows("1", 50), ...rows("2", 50), ...rows("3", 50)])).toBe("3/*,2/*");
  expect(lastPoints([...rows("1", 8), ...rows("2", 1, true)])).toBe("");
  expect(lastPoints([])).toBe("");
});

test("what was asked for is in the middle, else what is live", () => {
  const none = { name: "", point: "" };
  expect(middleOf("", none, [], null, "")).toEqual([]);
  expect(middleOf("", none, [], "1/a", "2/*,1/*")).toEqual(["2/*", "1/*"]);
  expect(middleOf("task", none, [], "1/a", "2/*")).toEqual(["1/a"]);
  expect(middleOf("found", { name: "plot*", point: "3" }, [], null, "2/*")).toEqual(["3/plot*"]);
});
