import { expect, test } from "vitest";
import type { PastBatch, PastCommand } from "../../api/past";
import { commandText, storyOf, touchedBy } from "./happenings";

const batch = (number: number, at: string, ids: string[] = []): PastBatch => ({
  batch: number, at, status: null, left_pool: [], tasks: ids.map((id) => ({ id, state: "running", remarks: [], flows: [1], in_pool: true })),
});
const command = (at: string): PastCommand => ({ number: 7, at, who: "ann", verb: "hold", arguments: { ids: ["1/a"], all: false }, answered_at: at, refused: null });

test("what people asked for stands before the batch that did it", () => {
  const around = [batch(1, "2030-01-01T00:00:00Z"), batch(2, "2030-01-01T00:00:05Z"), batch(3, "2030-01-01T00:00:09Z")];
  const story = storyOf({ around, commands: [command("2030-01-01T00:00:05Z")] });
  expect(story.map((one) => one.key)).toEqual(["b1", "c7", "b2", "b3"]);
});

test("the tasks of the batch at hand are known, those of others are not", () => {
  const around = [batch(1, "2030-01-01T00:00:00Z", ["1/a"]), { ...batch(2, "2030-01-01T00:00:05Z", ["1/b"]), left_pool: ["1/c"] }];
  expect(touchedBy({ around, batch: 2 })).toEqual(new Set(["1/b", "1/c"]));
  expect(touchedBy({ around, batch: 9 }).size).toBe(0);
});

test("a command is told with what it said", () => {
  expect(commandText(command("x"))).toBe("hold 1/a");
  expect(commandText({ verb: "set", arguments: { ids: ["1/a", "1/b"], outputs: ["x", "y"], flow: null } })).toBe("set 1/a 1/b outputs=x,y");
});
