import { Graphviz } from "@hpcc-js/wasm-graphviz";
import { expect, test } from "vitest";
import type { DotJson, LayoutRequest } from "./layout";
import { placedInOrder } from "./ordering";

const graphviz = await Graphviz.load();
const place = (request: LayoutRequest) => placedInOrder(request, (dot) => JSON.parse(graphviz.layout(dot, "json", "dot")) as DotJson);
const SIZE = { width: 110, height: 38 };
const names = Array.from({ length: 60 }, (_, number) => `1/step${number}`);
const follows = (ids: readonly string[]): [string, string][] => ids.slice(1).map((id, at) => [ids[at] ?? "", id]);

function chain(direction: "LR" | "TB", more: [string, string][] = [], ids = names): LayoutRequest {
  return { direction, boxes: ids.map((id) => ({ id, ...SIZE, frames: ["1"] })), lines: [...follows(ids), ...more].map(([from, to]) => ({ id: `${from}>${to}`, from, to, weight: 1 })) };
}

test.each(["LR", "TB"] as const)("sixty tasks in a row are rows below each other, shaped like a window, within their frame (%s)", (direction) => {
  const { boxes, frames: [frame], lines, width, height } = place(chain(direction));
  expect(width / height).toBeGreaterThan(1);
  expect(width / height).toBeLessThan(4);
  const at = names.map((id) => boxes.get(id) ?? { x: NaN, y: NaN });
  const apart = at.every((a, i) => at.slice(i + 1).every((b) => Math.abs(a.x - b.x) >= SIZE.width || Math.abs(a.y - b.y) >= SIZE.height));
  const framed = at.every(({ x, y }) => frame !== undefined && x >= frame.x && y >= frame.y + 20 && x + SIZE.width <= frame.x + frame.width && y + SIZE.height <= frame.y + frame.height);
  expect({ apart, framed }).toEqual({ apart: true, framed: true });
  expect(frame && frame.x + frame.width <= width && frame.y + frame.height <= height).toBe(true);
  // Every arrow ends at its box, whether it goes on or back.
  for (const [from, to] of follows(names)) {
    const [tip, box] = [lines.get(`${from}>${to}`)?.head?.to, boxes.get(to)];
    const away = direction === "LR" ? [tip && box && tip.x - box.x, tip && box && tip.y - box.y - SIZE.height / 2] : [tip && box && tip.y - box.y, tip && box && tip.x - box.x - SIZE.width / 2];
    for (const one of away) expect(Math.abs(one ?? NaN)).toBeLessThan(3);
  }
});

test("a chain that is short, and one with a line over many tasks, stay one row", () => {
  const rowsOf = (request: LayoutRequest) => new Set([...place(request).boxes.values()].map(({ y }) => Math.round(y / 60))).size;
  expect(rowsOf(chain("LR", [], names.slice(0, 12)))).toBe(1);
  const over = place(chain("LR", [["1/step0", "1/step59"]]));
  expect(over.width).toBeGreaterThan(6_000);
});
