import { expect, test } from "vitest";
import { fitOf } from "./fitting";

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
