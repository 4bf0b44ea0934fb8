// @vitest-environment jsdom
import { expect, test } from "vitest";
import { isFailed } from "./legible";
import { drawCrosses } from "./Overview";

test("in the small map a failure is a cross, larger than its box, with an edge that is seen on any colour", () => {
  const said: string[] = [];
  const context = {
    strokeStyle: "", lineWidth: 0,
    beginPath: () => undefined,
    moveTo: (x: number, y: number) => void said.push(`from ${x},${y}`),
    lineTo: (x: number, y: number) => void said.push(`to ${x},${y}`),
    stroke: () => void said.push(`${context.strokeStyle} ${context.lineWidth}`),
  };
  drawCrosses(context, [{ x: 10, y: 20 }]);
  expect(said.slice(0, 4)).toEqual(["from 6.5,16.5", "to 13.5,23.5", "from 6.5,23.5", "to 13.5,16.5"]);
  expect(said.slice(4)).toEqual(["#fff 4.5", "#d33f3f 2"]);
});

test("what could not be submitted has failed, too; what runs or has succeeded has not", () => {
  expect(["failed", "submit-failed", "running", "succeeded", "waiting", "expired"].filter(isFailed)).toEqual(["failed", "submit-failed"]);
});
