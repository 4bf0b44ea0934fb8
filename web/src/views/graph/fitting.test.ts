import { expect, test } from "vitest";
import { beginningOf, fitOf, focusOf, startOf } from "./fitting";

const room = { width: 1400, height: 600 };
const [nothing, map] = ["24px", { right: "230px", bottom: "180px" }];

test("a graph that would reach the small map is put beside it or above it, where it can be nearer", () => {
  expect(fitOf({ width: 3000, height: 900 }, room, true).padding).toMatchObject({ right: nothing, bottom: map.bottom });
  expect(fitOf({ width: 1000, height: 2000 }, room, true).padding).toMatchObject({ right: nothing, bottom: nothing });
  expect(fitOf({ width: 2000, height: 900 }, room, true).padding).toMatchObject({ right: map.right, bottom: nothing });
});

test("where there is no map, or the graph does not come near it, it has all the room", () => {
  expect(fitOf({ width: 3000, height: 900 }, room, false).padding).toMatchObject({ right: nothing, bottom: nothing });
  expect(fitOf({ width: 300, height: 100 }, room, true).padding).toMatchObject({ right: nothing, bottom: nothing });
});

test("a graph of which no name could be read begins near the task that matters most, at a size at which it is read", () => {
  const long = { width: 20_000, height: 300 };
  expect(startOf(long, room, true, ["1/a"])).toEqual({ nodes: [{ id: "1/a" }], minZoom: 0.8, maxZoom: 0.8 });
  expect(startOf(long, room, true, [])).toEqual(fitOf(long, room, true));
  expect(startOf({ width: 3000, height: 900 }, room, true, ["1/a"])).toEqual(fitOf({ width: 3000, height: 900 }, room, true));
});

test("what failed matters more than what runs, and that more than what waits; bunches are looked at whole", () => {
  const tasks = (...states: string[]) => ({
    tasks: new Map(states.map((state, number) => [`${number} ${state}`, { id: `${number} ${state}`, point: "1", name: "a", state, in_pool: state !== "future", remarks: [], flows: [1], submit: 0, distance: 0 }])),
  });
  const none = { bunches: [] };
  expect(focusOf(tasks("future", "waiting", "running", "failed"), none)).toEqual(["3 failed"]);
  expect(focusOf(tasks("future", "waiting", "running"), none)).toEqual(["2 running"]);
  expect(focusOf(tasks("future", "waiting"), none)).toEqual(["1 waiting"]);
  expect(focusOf(tasks("future"), none)).toEqual(["0 future"]);
  expect(focusOf(tasks("future", "failed"), { bunches: [{ id: "b", members: ["x", "y"], x: 0, y: 0, width: 1, height: 1 }] })).toEqual([]);
});

test("a definition begins with what is seen beside its upper left corner, or else nearest to it", () => {
  const boxes = (...places: [number, number][]) => ({ boxes: new Map(places.map(([x, y]) => [`${x},${y}`, { x, y }] as const)) });
  expect(beginningOf(boxes([3000, 900], [0, 40], [300, 0], [900, 2000]), room)).toEqual(["0,40", "300,0"]);
  expect(beginningOf(boxes([3000, 900], [2500, 800]), room)).toEqual(["2500,800"]);
  expect(beginningOf(boxes(), room)).toEqual([]);
});
