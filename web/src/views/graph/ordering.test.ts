import { Graphviz } from "@hpcc-js/wasm-graphviz";
import { expect, test } from "vitest";
import type { DotJson, LayoutRequest } from "./layout";
import { partsOf, placedInOrder } from "./ordering";

const graphviz = await Graphviz.load();
const place = (request: LayoutRequest) => placedInOrder(request, (dot) => JSON.parse(graphviz.layout(dot, "json", "dot")) as DotJson);
const box = (id: string) => ({ id, width: 100, height: 38, frames: [id.split("/")[0] ?? ""] });
const line = (from: string, to: string) => ({ id: `${from}>${to}`, from, to, weight: 1 });
const request = (direction: "LR" | "TB", ids: string[], lines: [string, string][]): LayoutRequest => ({ direction, boxes: ids.map(box), lines: lines.map(([from, to]) => line(from, to)) });

/** Names of frames as they stand, and what lies over something else. */
function seen(asked: LayoutRequest) {
  const { boxes, frames, lines, width, height } = place(asked);
  const inside = frames.every((one) => one.x >= 0 && one.y >= 0 && one.x + one.width <= width && one.y + one.height <= height);
  const apart = frames.every((a, at) => frames.slice(at + 1).every((b) => a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y));
  const framed = [...boxes].every(([id, { x, y }]) => {
    const frame = frames.find((one) => one.name === id.split("/")[0]);
    // The name of a frame stands above its boxes, and has room there.
    return frame !== undefined && x >= frame.x && x + 100 <= frame.x + frame.width && y - frame.y >= 20 && y + 38 <= frame.y + frame.height;
  });
  const along = (one: (typeof frames)[number]) => (asked.direction === "LR" ? one.y : one.x);
  return { order: [...frames].sort((a, b) => along(a) - along(b)).map((one) => one.name), sound: inside && apart && framed, lines: lines.size };
}

test.each(["LR", "TB"] as const)("points that nothing joins stand in their order (%s)", (direction) => {
  const ids = ["3", "1", "2", "10"].sort((a, b) => Number(a) - Number(b)).flatMap((point) => [`${point}/a`, `${point}/b`]);
  const asked = request(direction, ids, ids.filter((id) => id.endsWith("a")).map((id) => [id, id.replace("a", "b")]));
  expect(partsOf(asked).map((part) => [part.boxes.length, part.lines.length])).toEqual([[2, 1], [2, 1], [2, 1], [2, 1]]);
  expect(seen(asked)).toEqual({ order: ["1", "2", "3", "10"], sound: true, lines: 4 });
});

test.each(["LR", "TB"] as const)("points that are joined stand in their order, too (%s)", (direction) => {
  // That of docs/howto/stalls.md, and one with a thread from each point to the next.
  const nightly = request(direction, ["1/report", "2/load", "2/report", "2/mail"], [["1/report", "2/report"], ["2/load", "2/report"], ["2/report", "2/mail"]]);
  expect(partsOf(nightly)).toEqual([nightly]);
  expect(seen(nightly)).toEqual({ order: ["1", "2"], sound: true, lines: 3 });
  const points = ["1", "2", "3", "4"];
  const ids = points.flatMap((point) => ["load", "model", "plot"].map((name) => `${point}/${name}`));
  const chain = points.flatMap((point, at): [string, string][] => [[`${point}/load`, `${point}/model`], [`${point}/model`, `${point}/plot`], ...(at > 0 ? [[`${points[at - 1] ?? ""}/model`, `${point}/model`] as [string, string]] : [])]);
  expect(seen(request(direction, ids, chain))).toEqual({ order: points, sound: true, lines: 11 });
});
