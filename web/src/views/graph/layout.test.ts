import { Graphviz } from "@hpcc-js/wasm-graphviz";
import { expect, test } from "vitest";
import { fromDot, spline, toDot, type DotJson, type LayoutRequest } from "./layout";

const HOSTILE = 'x"]; evil [label="<script>';
const request: LayoutRequest = {
  direction: "LR",
  boxes: [
    { id: "1/a", width: 100, height: 38, frames: ["1", "FAM"] },
    { id: `1/${HOSTILE}`, width: 120, height: 38, frames: ["1"] },
    { id: "2/a", width: 100, height: 38, frames: ["2"] },
  ],
  lines: [
    { id: "one", from: "1/a", to: `1/${HOSTILE}`, weight: 1 },
    { id: "two", from: "1/a", to: "2/a", weight: 1 },
    { id: "nowhere", from: "1/a", to: "9/z", weight: 1 },
  ],
};

test("no name of anybody's reaches Graphviz", () => {
  const { dot } = toDot(request);
  expect(dot).not.toContain("evil");
  expect(dot).not.toContain("FAM");
});

test("every box has its place within its frames, and every line its curve", async () => {
  const { dot, frames } = toDot(request);
  const found = JSON.parse((await Graphviz.load()).layout(dot, "json", "dot")) as DotJson;
  const placed = fromDot(found, request, frames);
  expect([...placed.boxes.keys()].sort()).toEqual(request.boxes.map((box) => box.id).sort());
  expect([...placed.lines.keys()].sort()).toEqual(["one", "two"]);
  expect(placed.frames.map((frame) => [frame.name, frame.depth])).toEqual([["1", 0], ["FAM", 1], ["2", 0]]);
  const box = placed.boxes.get("1/a");
  const frame = placed.frames.find((one) => one.name === "FAM");
  expect(box && frame && box.x >= frame.x && box.y >= frame.y && box.x + 100 <= frame.x + frame.width).toBe(true);
});

test("a curve is turned upside down, as the screen has it", () => {
  expect(spline("e,9,9 0,10 1,10 2,10 3,0", 10)).toEqual({ path: "M0.0 0.0C1.0 0.0 2.0 0.0 3.0 10.0", middle: { x: 1.5, y: 1.25 } });
  const twice = spline("0,0 1,0 2,0 3,0 4,0 5,0 6,0", 0);
  expect(twice.middle).toEqual({ x: 3, y: 0 });
});
