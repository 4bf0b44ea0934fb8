import { expect, test } from "vitest";
import type { GraphEdge, GraphGroup } from "../../api/types";
import type { Drawing } from "./drawing";
import type { Placed } from "./layout";
import { startAt, stepFrom } from "./steps";

/** prep → m1, m2, m3 (below each other) → their family's sign → join → archive; alone is far below. */
const SPOTS: Record<string, [number, number]> = { prep: [0, 100], m1: [200, 0], m2: [200, 100], m3: [200, 200], join: [500, 100], archive: [700, 100], alone: [0, 400] };
const edge = (from: string, to: string) => ({ from, to }) as GraphEdge;
const EDGES = [edge("prep", "m1"), edge("prep", "m2"), edge("prep", "m3"), edge("m1", "all"), edge("m2", "all"), edge("m3", "all"), edge("all", "join"), edge("join", "archive")];

function drawing(direction: "LR" | "TB" = "LR", failed = ""): Drawing {
  const ids = Object.keys(SPOTS);
  return {
    request: { boxes: [], lines: [], direction },
    tasks: new Map(ids.map((id) => [id, { state: id === failed ? "failed" : "waiting" }])),
    groups: new Map([["all", {} as GraphGroup]]),
    folds: new Map(),
    boxes: ids.map((id) => ({ id, width: 100, height: 40, frames: [] })),
    edges: new Map(EDGES.map((one) => [`${one.from} ${one.to}`, one])),
  } as unknown as Drawing;
}
const placed = (turned = false) => ({ boxes: new Map(Object.entries(SPOTS).map(([id, [x, y]]) => [id, turned ? { x: y, y: x } : { x, y }])) }) as unknown as Placed;
const from = (at: string, key: string) => stepFrom(key, at, drawing(), placed());

test("along the edges an arrow leads to what comes next, through the sign of a family", () => {
  expect(from("prep", "ArrowRight")).toBe("m2");
  expect(from("m3", "ArrowRight")).toBe("join");
  expect(from("join", "ArrowLeft")).toBe("m2");
  expect(from("join", "ArrowRight")).toBe("archive");
});

test("beside them it leads to the nearest box", () => {
  expect(from("m2", "ArrowUp")).toBe("m1");
  expect(from("m2", "ArrowDown")).toBe("m3");
  expect(from("m1", "ArrowUp")).toBeNull();
});

test("where no edge leads, the nearest box there is taken, and every box can be reached", () => {
  expect(from("alone", "ArrowRight")).toBe("m3");
  expect(from("prep", "ArrowDown")).toBe("alone");
  expect(from("archive", "ArrowRight")).toBeNull();
});

test("in a graph that goes down, Down follows the edges", () => {
  expect(stepFrom("ArrowDown", "prep", drawing("TB"), placed(true))).toBe("m2");
  expect(stepFrom("ArrowRight", "m2", drawing("TB"), placed(true))).toBe("m3");
});

test("Home and End lead to the first and the last box", () => {
  expect(from("m2", "Home")).toBe("prep");
  expect(from("m2", "End")).toBe("archive");
});

test("one begins at the selected task, or at a failure, or at the first", () => {
  expect(startAt("m3", drawing("LR", "join"), placed())).toBe("m3");
  expect(startAt("gone", drawing("LR", "join"), placed())).toBe("join");
  expect(startAt(null, drawing(), placed())).toBe("prep");
});
