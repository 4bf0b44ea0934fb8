import { Graphviz } from "@hpcc-js/wasm-graphviz";
import { expect, test } from "vitest";
import type { EdgeState, GraphDocument, GraphEdge } from "../../api/types";
import { strandState, strandText } from "./strands";
import { BUNCH_MIN, bunchText } from "./bunches";
import { drawable, drawGraph } from "./drawing";
import type { DotJson } from "./layout";
import { placedInOrder } from "./ordering";

const graphviz = await Graphviz.load();
const numbers = (count: number) => Array.from({ length: count }, (_, number) => number + 1);

function edge(from: string, to: string, more: Partial<GraphEdge> = {}): GraphEdge {
  return { from, to, output: "succeeded", state: "open", by_hand: false, suicide: false, arrow: 0, alternative: false, ...more };
}

function graph(edges: GraphEdge[], alone: string[] = []): GraphDocument {
  const ids = [...new Set([...edges.flatMap(({ from, to }) => [from, to]), ...alone])];
  const tasks = ids.map((id) => ({ id, point: id.split("/")[0] ?? "", name: id.split("/")[1] ?? "", state: "waiting", remarks: [], flows: [1], submit: 0, in_pool: true, distance: 0 }));
  return { run: "r", status: "running", batch: 1, version: "1", points: [...new Set(tasks.map((task) => task.point))], families: {}, tasks, groups: [], edges, cut: false };
}

const drawn = (edges: GraphEdge[], alone: string[] = []) => drawGraph(graph(edges, alone), "point", "LR", () => true);
const place = ({ request }: ReturnType<typeof drawn>) => placedInOrder(request, (dot) => JSON.parse(graphviz.layout(dot, "json", "dot")) as DotJson);
const fan = (count: number, state: EdgeState = "open") => numbers(count).flatMap((i) => [edge("1/start", `1/m${i}`, { state: "true" }), edge(`1/m${i}`, "1/all", { state })]);

test("three hundred children of a task, which all have the same child, are a bunch that is read row by row", () => {
  const drawing = drawn(fan(300));
  expect(drawing.request.boxes.map((box) => box.members?.length ?? 1)).toEqual([1, 300, 1]);
  expect(drawing.request.lines).toHaveLength(2);
  expect(drawing.boxes).toHaveLength(302);
  const placed = place(drawing);
  const [bunch] = placed.bunches;
  const at = (i: number) => placed.boxes.get(`1/m${i}`) ?? { x: NaN, y: NaN };
  const size = drawing.boxes.find((box) => box.id === "1/m1") ?? { width: NaN, height: NaN };
  const inside = numbers(300).map(at).every(({ x, y }) => bunch !== undefined && x >= bunch.x && y >= bunch.y && x + size.width <= bunch.x + bunch.width && y + size.height <= bunch.y + bunch.height);
  const apart = numbers(300).every((i) => numbers(i - 1).every((j) => Math.abs(at(i).x - at(j).x) >= size.width || Math.abs(at(i).y - at(j).y) >= size.height));
  const inLines = numbers(299).every((i) => at(i + 1).y > at(i).y || (at(i + 1).y === at(i).y && at(i + 1).x > at(i).x));
  expect({ inside, apart, inLines }).toEqual({ inside: true, apart: true, inLines: true });
  expect(placed.width / placed.height).toBeGreaterThan(1);
  expect(placed.width / placed.height).toBeLessThan(4);
});

test("chains side by side, also from one point to the next, are bunches one behind the other", () => {
  const chains = ["1", "2"].flatMap((point) => numbers(40).flatMap((i) => [edge(`${point}/obs`, `${point}/ens${i}`), edge(`${point}/ens${i}`, `${point}/post${i}`)]));
  const drawing = drawn([...chains, ...numbers(40).map((i) => edge(`1/ens${i}`, `2/ens${i}`))]);
  expect(drawing.request.boxes.map((box) => box.members?.length ?? 1)).toEqual([1, 40, 40, 1, 40, 40]);
  expect([...drawing.strands.values()].map((edges) => edges.length).sort()).toEqual([40, 40, 40, 40, 40]);
});

test("what is joined otherwise stands apart, and a few stay below each other", () => {
  const other = drawn([...fan(30), edge("1/m7", "1/mend", { output: "failed" })]);
  expect(other.request.boxes.find((box) => box.members)?.members?.map((box) => box.id)).not.toContain("1/m7");
  expect(other.request.boxes.map((box) => box.id)).toContain("1/m7");
  expect(drawn(fan(BUNCH_MIN - 1)).request.boxes.every((box) => box.members === undefined)).toBe(true);
  expect(drawn(fan(BUNCH_MIN)).request.boxes.filter((box) => box.members !== undefined)).toHaveLength(1);
  expect(drawn([], numbers(12).map((i) => `1/lonely${i}`)).request.boxes).toHaveLength(1);
});

test("a circle, as tasks that remove each other are, is drawn box by box", () => {
  const ring = numbers(12).map((i) => edge(`1/a${i}`, `1/a${(i % 12) + 1}`, { suicide: true }));
  const drawing = drawn(ring);
  expect(drawing.request.boxes).toHaveLength(12);
  expect(place(drawing).boxes.size).toBe(12);
});

test("a line says how many of its edges are met, in room that it has from the beginning", () => {
  const [before, after] = [drawn(fan(20)), drawn(fan(20).map((one, at) => (at < 15 ? { ...one, state: "true" as const } : one)))];
  expect(after.key).toBe(before.key);
  const join = [...after.strands.values()].find((edges) => edges[0]?.to === "1/all") ?? [];
  expect([strandText(join), strandState(join)]).toEqual(["7 of 20 met", "open"]);
  expect(before.request.lines.map((line) => line.label !== undefined)).toEqual([false, true]);
  expect(strandState([...join, edge("1/x", "1/all", { state: "lost" })])).toBe("lost");
  expect(strandText([edge("1/a", "1/b", { output: "failed", by_hand: true, state: "true" })])).toBe("failed by hand");
});

test("a bunch has the name that its tasks share", () => {
  expect(bunchText(["member_i01", "member_i02", "member_i10"])).toBe("3 × member_i…");
  expect(bunchText(["gauge", "tide"])).toBe("2 tasks");
});

test("while a graph that has grown is laid out, the one before it is shown with every task that it has", () => {
  const before = drawn([edge("1/a", "1/b")]);
  const grown = drawn([edge("1/a", "1/b"), edge("1/waves", "1/b")]);
  const shown = drawable(grown, before);
  const places = place(before).boxes;
  expect(shown.boxes.map((box) => box.id).filter((id) => !places.has(id))).toEqual([]);
  expect(drawable(grown, drawn([edge("1/a", "1/b"), edge("1/waves", "1/b", { state: "true" })]))).toBe(grown);
  expect(drawable(grown, null)).toBe(grown);
});
