import { expect, test } from "vitest";
import { matching } from "./found";

const ALL = ["Runs", "Workers", "forecast/run1", "night/run1", "night/run2"].map((title) => ({ title }));
const found = (text: string) => matching(ALL, text).map((one) => one.title);

test("finds all that has every word, whatever its case", () => {
  expect(found("RUN1")).toEqual(["forecast/run1", "night/run1"]);
  expect(found("run1 night")).toEqual(["night/run1"]);
  expect(found("nobody")).toEqual([]);
});

test("puts first what begins with the first word", () => {
  expect(found("run")).toEqual(["Runs", "forecast/run1", "night/run1", "night/run2"]);
  expect(found("")).toEqual(ALL.map((one) => one.title));
});
