import { expect, test } from "vitest";
import { TASK_VERBS } from "../acting/verbs";
import type { TaskRow } from "../api/types";
import { commandFor, completions, isPoint, readCommand, verbsLike, type Tasks, type Typed } from "./commands";

const row = (id: string, state: string, remarks: string[] = []): TaskRow => {
  const [point = "", name = ""] = id.split("/");
  return { id, point, name, state, remarks, flows: [1], submit: 1, in_pool: true, queued_at: null, started_at: null, ended_at: null, exit_status: null, worker: null };
};
const node = (families: string[]) => ({ families, branch: families }) as unknown as Tasks["nodes"][string];

const TASKS: Tasks = {
  rows: [row("20261118T0600Z/m1", "failed"), row("20261118T0600Z/m2", "running"), row("20261118T1200Z/m1", "waiting", ["held"]), row("20261118T0600Z/join", "failed")],
  nodes: { m1: node(["ENSEMBLE"]), m2: node(["ENSEMBLE"]), join: node([]) },
  hasEnded: false,
};
const typed = (text: string): Typed => {
  const found = readCommand(text);
  if (found === null) throw new Error(`${text} is no command`);
  return found;
};

test.each([
  ["trigger failed in wide", "trigger", "failed", "wide"],
  ["Hold 06Z ENSEMBLE", "hold", "06Z ENSEMBLE", null],
  ["kill in wide/run1", "kill", "", "wide/run1"],
  ["trigger failed in ", "trigger", "failed", ""],
  ["pause wide", "pause", "", "wide"],
  ["pause in wide", "pause", "", "wide"],
  ["continue wide", "run", "", "wide"],
  ["release all in hourly", "release", "all", "hourly"],
])("%s is read as it is meant", (text, verb, what, run) => {
  const { verb: found, ...rest } = typed(text);
  expect({ verb: found.verb, what: rest.what, run: rest.run }).toEqual({ verb, what, run });
});

test("what does not begin with a verb is looked for, and so is a verb to which nothing was added yet", () => {
  expect(readCommand("wide/run1")).toBeNull();
  expect(readCommand("trigger")).toBeNull();
  expect(verbsLike("tr").map(({ text }) => text)).toEqual(["trigger "]);
});

test("every verb that has a button for tasks can be typed", () => {
  for (const { verb } of TASK_VERBS) expect(typed(`${verb} all in x`).verb.verb).toBe(verb);
});

test.each([
  ["trigger failed", { verb: "trigger", ids: ["20261118T0600Z/m1", "20261118T0600Z/join"] }],
  ["trigger failed ENSEMBLE", { verb: "trigger", ids: ["20261118T0600Z/m1"] }],
  ["kill all", { verb: "kill", ids: ["20261118T0600Z/m2"] }],
  ["trigger jo*", { verb: "trigger", ids: ["20261118T0600Z/join"] }],
  ["hold 06Z ensemble", { verb: "hold", ids: ["20261118T0600Z/ENSEMBLE"] }],
  ["hold ENSEMBLE", { verb: "hold", ids: ["20261118T0600Z/ENSEMBLE", "20261118T1200Z/ENSEMBLE"] }],
  ["hold storm", { verb: "hold", ids: ["20261118T0600Z/storm", "20261118T1200Z/storm"] }],
  ["release held", { verb: "release", ids: ["20261118T1200Z/m1"] }],
  ["release all", { verb: "release", everything: true }],
])("%s names the tasks that it fits", (text, action) => {
  expect(commandFor(typed(`${text} in wide`), TASKS)).toEqual(action);
});

test("a command that fits no task is none", () => {
  expect(commandFor(typed("trigger running in wide"), TASKS)).toBeNull();
  expect(commandFor(typed("trigger  in wide"), TASKS)).toBeNull();
  expect(commandFor(typed("trigger storm in wide"), TASKS)).toBeNull();
  expect(commandFor(typed("kill all in wide"), { ...TASKS, hasEnded: true })).toBeNull();
});

test("what can follow is told with how many tasks it takes, and nothing that the verb does not fit", () => {
  const next = (text: string) => completions(typed(text), "wide/run1", TASKS);
  expect(next("trigger ")).toContainEqual({ text: "trigger failed in wide/run1", says: "2 tasks" });
  expect(next("trigger ").map(({ text }) => text)).not.toContain("trigger running in wide/run1");
  expect(next("hold ENS")).toEqual([{ text: "hold ENSEMBLE in wide/run1", says: "1 task" }]);
});

test("an hour is a point", () => {
  expect(isPoint("06Z", "20261118T0600Z")).toBe(true);
  expect(isPoint("06z", "20261118T06Z")).toBe(true);
  expect(isPoint("06Z", "20261106T0000Z")).toBe(false);
  expect(isPoint("3", "3")).toBe(true);
  expect(isPoint("3", "13")).toBe(false);
});
