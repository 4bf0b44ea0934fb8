import { expect, test } from "vitest";
import { PastRows, type PastBatch, type PastChange, type PastCommand, type PastDocument } from "../../api/past";
import { addressOf } from "./controls";
import { batchOf } from "./useMoment";
import { causesOf, commandText, storyOf, touchedBy } from "./happenings";

const batch = (number: number, at: string, ids: string[] = []): PastBatch => ({
  batch: number, at, status: null, left_pool: [], tasks: ids.map((id) => ({ id, state: "running", remarks: [], flows: [1], in_pool: true, submit: 1 })),
});
const command = (at: string): PastCommand => ({ number: 7, at, who: "ann", verb: "hold", arguments: { ids: ["1/a"], all: false }, answered_at: at, refused: null, answer: null });

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

const change = (id: string, before: string, state: string, more: Partial<PastChange> = {}): PastChange => ({ id, before, state, remarks: [], made: [], ...more });

test("a batch is told with who asked for it and what jobs did, not with what followed", () => {
  const around = [batch(1, "2030-01-01T00:00:00Z"), batch(2, "2030-01-01T00:00:05.100Z"), batch(3, "2030-01-01T00:00:05.400Z")];
  const obeyed = { ...command("2030-01-01T00:00:04Z"), answered_at: "2030-01-01T00:00:05.102Z" };
  const changed = [change("1/a", "running", "succeeded", { made: ["succeeded", "half"] }), change("1/b", "future", "waiting"), change("1/c", "preparing", "running"), change("1/d", "running", "waiting", { remarks: ["retrying"] })];
  expect(causesOf({ around, batch: 2, commands: [obeyed], changed })).toEqual(["ann asked: hold 1/a", "1/a reported half", "1/a succeeded", "1/c began to run", "1/d failed and is tried again"]);
});

test("who was refused, or obeyed by another batch, caused nothing", () => {
  const around = [batch(2, "2030-01-01T00:00:05Z"), batch(3, "2030-01-01T00:00:05.400Z")];
  const commands = [{ ...command("2030-01-01T00:00:04Z"), answered_at: "2030-01-01T00:00:05.500Z" }, { ...command("2030-01-01T00:00:04Z"), answered_at: "2030-01-01T00:00:05Z", refused: "no" }];
  expect(causesOf({ around, batch: 2, commands, changed: [] })).toEqual(["the scheduler continued; no job and no command caused this"]);
  expect(causesOf({ around, batch: 3, commands, changed: [] })).toEqual(["ann asked: hold 1/a"]);
  expect(causesOf({ around, batch: 9, commands, changed: [] })).toEqual([]);
});

test("a link leads to the moment itself, and keeps what else the address says", () => {
  expect(addressOf("http://host/runs/tide?views=history&history.batch=2", 7)).toBe("http://host/runs/tide?views=history&history.batch=7");
  expect(batchOf("", 9)).toBe(9);
  expect(["4", "-1", "99", "x"].map((one) => batchOf(one, 9))).toEqual([4, 0, 9, 0]);
});

test("rows of the past say of which moment they are, and never change", () => {
  const rows = new PastRows({ batch: 4, tasks: [{ id: "1/a", state: "running" }], nodes: {}, points: ["1"], points_left_out: 2, changed: [change("1/a", "waiting", "running")] } as unknown as PastDocument);
  expect(rows.row("1/a")?.state).toBe("running");
  expect(rows.snapshot()).toBe(rows.snapshot());
  expect(rows.snapshot().past).toEqual({ batch: 4, touched: new Set(["1/a"]) });
});
