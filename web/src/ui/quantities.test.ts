import { expect, test } from "vitest";
import { axisLabels, BYTES, COUNT, PERCENT, rateText, SECONDS } from "./quantities";

test("labels of an axis share a unit and never repeat", () => {
  expect(axisLabels([1, 1.02, 1.04, 1.06], SECONDS)).toEqual(["1.00 s", "1.02 s", "1.04 s", "1.06 s"]);
  expect(axisLabels([0, 0.25, 0.5, 1], SECONDS)).toEqual(["0.00 s", "0.25 s", "0.50 s", "1.00 s"]);
  expect(axisLabels([0.02, 0.0205, 0.021], SECONDS)).toEqual(["20.0 ms", "20.5 ms", "21.0 ms"]);
  expect(axisLabels([0, 2, 4], SECONDS)).toEqual(["0 s", "2 s", "4 s"]);
  expect(axisLabels([0, 25, 50, 75], PERCENT)).toEqual(["0 %", "25 %", "50 %", "75 %"]);
  expect(axisLabels([1024 ** 2, 1.5 * 1024 ** 2, 2 * 1024 ** 2], BYTES)).toEqual(["1.0 MiB", "1.5 MiB", "2.0 MiB"]);
});

test("no label is longer than it must be to differ from the next", () => {
  expect(axisLabels([6_640_000, 6_660_000, 6_680_000], BYTES)).toEqual(["6.332 MiB", "6.351 MiB", "6.371 MiB"]);
  expect(axisLabels([0, 2 * 1024 ** 2, 4 * 1024 ** 2], BYTES)).toEqual(["0 MiB", "2 MiB", "4 MiB"]);
});

test("long times are written as people say them, and one label as a value", () => {
  expect(axisLabels([0, 60, 120], SECONDS)).toEqual(["0 s", "1 min", "2 min"]);
  expect(axisLabels([0.03], SECONDS)).toEqual(["30 ms"]);
});

test("what is counted has whole numbers", () => {
  expect(axisLabels([0, 0.5, 1], COUNT)).toEqual(["0", "", "1"]);
});

test("all of them is said only of all of them", () => {
  expect([1, 204 / 205, 0.9999, 0.91, 0.016, 0].map(rateText)).toEqual(["100 %", "99.5 %", "99.9 %", "91 %", "1.6 %", "0 %"]);
});
