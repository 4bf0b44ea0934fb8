import { describe, expect, it } from "vitest";
import { drawGraph } from "../../views/graph/drawing";
import { asGraph, familyColours, kindOfStep, outputText, stageText } from "./definitionDrawing";

const FOUND = {
  name: "w",
  version: "1",
  kind: "flow.cylc",
  workflow: "w",
  points: ["1", "2"],
  tasks: [
    { id: "1/a", name: "a", point: "1", family: "MODELS" },
    { id: "2/a", name: "a", point: "2", family: "MODELS" },
    { id: "1/@clock", name: "@clock", point: "1", family: null },
  ],
  edges: [
    { parent: "1/a", child: "2/a", outputs: ["succeeded"], certain: true, suicide: false },
    { parent: "1/@clock", child: "1/a", outputs: [], certain: false, suicide: false },
  ],
  cut: false,
  findings: [],
};

describe("a definition's graph", () => {
  it("is drawn as that of a run, framed by point or family", () => {
    const drawing = drawGraph(asGraph(FOUND), "both", "LR", () => true);
    expect(drawing.request.boxes.map((box) => box.frames)).toEqual([["1", "MODELS"], ["1"], ["2", "MODELS"]]); // points in their order
    expect([...drawing.edges.values()].map((edge) => [edge.from, edge.to, edge.alternative])).toEqual([["1/a", "2/a", false], ["1/@clock", "1/a", true]]);
  });

  it("names outputs, and both ends as finished", () => {
    expect([["failed", "succeeded"], ["expired", "failed", "succeeded"], ["failed"], ["b", "a"], []].map(outputText)).toEqual(["finished", "finished", "failed", "a, b", "succeeded"]);
  });
});

it("stages stand without points, and objects and lists as what they are", () => {
  expect(["image", "image<item>", "object@vis%2E1", "list@image"].map(stageText)).toEqual(["image", "image", "buffer object vis.1", "the list of stage image"]);
});

it("families have colours in the order of their names, and the kinds of boxes are known", () => {
  expect([...familyColours({ a: ["B"], b: ["A"], c: [] })]).toEqual([["A", 0], ["B", 1]]);
  expect(["1/@clock", "1/object@x", "1/list@y", "1/a"].map(kindOfStep)).toEqual(["trigger", "object", "object", "task"]);
});
