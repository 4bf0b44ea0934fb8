import { Graphviz } from "@hpcc-js/wasm-graphviz";
import { expect, test } from "vitest";
import { arrowPath, fromDot, spline, toDot, type DotJson, type LayoutRequest } from "./layout";

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

test("what is written on a line has room beside the boxes and the arrow", async () => {
  const labelled = { ...request, lines: request.lines.map((line) => ({ ...line, label: { width: 70, height: 16 } })) };
  const { dot, frames } = toDot(labelled);
  const placed = fromDot(JSON.parse((await Graphviz.load()).layout(dot, "json", "dot")) as DotJson, labelled, frames);
  for (const { head, label } of placed.lines.values()) {
    expect(head).not.toBeNull();
    const overlaps = [...(head ? [head.from, head.to] : [])].some((end) => Math.abs(end.x - label.x) < 35 && Math.abs(end.y - label.y) < 8);
    expect(overlaps).toBe(false);
    for (const [id, box] of placed.boxes) {
      const width = request.boxes.find((one) => one.id === id)?.width ?? 0;
      const apart = label.x + 35 <= box.x || label.x - 35 >= box.x + width || label.y + 8 <= box.y || label.y - 8 >= box.y + 38;
      expect(apart).toBe(true);
    }
  }
});

test("a curve is turned upside down, as the screen has it, and ends where its arrow begins", () => {
  const upsideDown = (x: number, y: number) => ({ x, y: 10 - y });
  expect(spline("e,9,0 0,10 1,10 2,10 3,0", upsideDown)).toEqual({
    path: "M0.0 0.0C1.0 0.0 2.0 0.0 3.0 10.0", head: { from: { x: 3, y: 10 }, to: { x: 9, y: 10 } }, label: { x: 1.5, y: 1.25 },
  });
  expect(spline("0,0 1,0 2,0 3,0 4,0 5,0 6,0", upsideDown).label).toEqual({ x: 3, y: 10 });
  expect(spline("0,0 1,0 2,0 3,0", upsideDown, "5,6").label).toEqual({ x: 5, y: 4 });
  expect(arrowPath({ from: { x: 0, y: 0 }, to: { x: 10, y: 0 } })).toBe("M10.0 0.0L0.0 4.2L0.0 -4.2Z");
});
