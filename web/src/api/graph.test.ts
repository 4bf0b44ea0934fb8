import { expect, test } from "vitest";
import { edgeKey, merged } from "./graph";
import type { GraphAnswer, GraphDocument, GraphEdge } from "./types";

const words = { name: "a", point: "1", remarks: [], flows: [1], submit: 0, in_pool: true, distance: 0 };
const task = (id: string, state = "waiting") => ({ ...words, id, state });
const edge = (from: string, to: string, state: GraphEdge["state"] = "open"): GraphEdge => ({
  from, to, output: "succeeded", state, by_hand: false, suicide: false, arrow: 0, alternative: false,
});
const known: GraphDocument = {
  run: "r", status: "running", batch: 1, version: "one", points: ["1"], families: { a: ["F"] }, groups: [], cut: false,
  tasks: [task("1/a"), task("1/b"), task("1/c")], edges: [edge("1/a", "1/b"), edge("1/b", "1/c")],
};
const answer = (what: Partial<GraphAnswer>): GraphAnswer => ({
  ...known, batch: 2, version: "two", since: "one", tasks: [], edges: [], families: {}, gone: { tasks: [], groups: [], edges: [] }, ...what,
});

test("an answer about nothing known is the whole graph", () => {
  const whole = answer({ since: null, tasks: [task("2/a")] });
  expect(merged(undefined, whole)).toEqual({ ...known, batch: 2, version: "two", tasks: [task("2/a")], edges: [], families: {} });
  expect(merged(known, whole).tasks).toEqual([task("2/a")]);
});

test("a graph that is as it was stays the same object, so that nothing is drawn again", () => {
  expect(merged(known, answer({ version: "one" }))).toBe(known);
});

test("only what changed is replaced, where it stood", () => {
  const after = merged(known, answer({ tasks: [task("1/b", "running"), task("1/d")], edges: [edge("1/a", "1/b", "true")] }));
  expect(after.tasks.map((one) => [one.id, one.state])).toEqual([["1/a", "waiting"], ["1/b", "running"], ["1/c", "waiting"], ["1/d", "waiting"]]);
  expect(after.tasks[0]).toBe(known.tasks[0]);
  expect(after.edges.map((one) => one.state)).toEqual(["true", "open"]);
  expect(after.edges[1]).toBe(known.edges[1]);
  expect([after.families, after.points, after.groups]).toEqual([known.families, known.points, []]);
  expect(after.families).toBe(known.families);
});

test("what is gone is gone, and families come with new names", () => {
  const gone = { tasks: ["1/c"], groups: [], edges: [{ from: "1/b", to: "1/c", output: "succeeded", suicide: false }] };
  const after = merged(known, answer({ gone, families: { d: [] } }));
  expect(after.tasks.map((one) => one.id)).toEqual(["1/a", "1/b"]);
  expect(after.edges.map(edgeKey)).toEqual(["1/a>1/b:succeeded"]);
  expect(after.families).toEqual({ a: ["F"], d: [] });
  expect(after.edges[0]).toBe(known.edges[0]);
});
