import { expect, test } from "vitest";
import { moved, sharesOf } from "./sizes";

const IDS = ["graph", "table"];

test("views share the width until somebody drags", () => {
  expect(sharesOf(IDS, {})).toEqual([0.5, 0.5]);
  const said = moved(IDS, [0.5, 0.5], 0, 0.2);
  expect(sharesOf(IDS, said).map((one) => one.toFixed(2))).toEqual(["0.70", "0.30"]);
});

test("no view is dragged away", () => {
  const said = moved(IDS, [0.5, 0.5], 0, 5);
  expect(sharesOf(IDS, said).map((one) => one.toFixed(2))).toEqual(["0.85", "0.15"]);
});

test("a third view does not move with the line between the first two", () => {
  const ids = ["a", "b", "c"];
  expect(sharesOf(ids, moved(ids, sharesOf(ids, {}), 0, 0.1))[2]).toBeCloseTo(1 / 3);
});
