import { expect, test } from "vitest";
import { actionFor, actionText, saysOf, TASK_VERBS } from "./verbs";

test.each([
  [{ verb: "trigger", ids: ["1/a"] }, "Trigger 1/a"],
  [{ verb: "hold", ids: ["1/a", "2/a"] }, "Hold 2 tasks"],
  [{ verb: "trigger", ids: ["1/a"], flow: "new" }, "Trigger 1/a in a new flow"],
  [{ verb: "set", ids: ["1/b"], prerequisites: ["1/a:succeeded"] }, "Satisfy 1/a:succeeded for 1/b"],
  [{ verb: "set", ids: ["1/a"], outputs: ["ready"] }, "Set ready of 1/a"],
  [{ verb: "pause" }, "Pause"],
  [{ verb: "run" }, "Continue"],
  [{ verb: "trigger", ids: ["1/a"], flow: "2" }, "Trigger 1/a in flow 2"],
  [{ verb: "hold", after: "3" }, "Hold everything after 3"],
  [{ verb: "hold", ids: ["*/a*"] }, "Hold */a*"],
  [{ verb: "release", everything: true }, "Release everything"],
  [{ verb: "stop", at_point: "3" }, "Stop at 3"],
])("%o is said so", (action, text) => {
  expect(actionText(action)).toBe(text);
});

test.each([
  [{ verb: "stop" }, "Nothing more is submitted, and the run stops. It can be continued later."],
  [{ verb: "stop", at_point: "3" }, "Continue until all tasks up to and including this point are done, then stop."],
  [{ verb: "set", ids: ["1/b"], prerequisites: ["1/a:succeeded"] }, "These prerequisites count as met."],
])("%o says what it does", (action, text) => {
  expect(saysOf(action)).toBe(text);
});

test("a job that runs can be killed, one that waits cannot", () => {
  const kill = TASK_VERBS.find((one) => one.verb === "kill");
  expect(kill?.fits?.({ state: "running", remarks: [], in_pool: true })).toBe(true);
  expect(kill?.fits?.({ state: "waiting", remarks: [], in_pool: true })).toBe(false);
});

test("what failed in a run that has ended runs again in its flow, anything else as usual", () => {
  const failed = { id: "1/a", state: "failed", flows: [1] };
  expect(actionFor("trigger", [failed], true)).toEqual({ verb: "trigger", ids: ["1/a"], flow: "1" });
  expect(actionFor("trigger", [failed], false)).toEqual({ verb: "trigger", ids: ["1/a"] });
  expect(actionFor("trigger", [failed, { ...failed, id: "1/b", state: "succeeded" }], true)).toEqual({ verb: "trigger", ids: ["1/a", "1/b"] });
  expect(actionFor("trigger", [{ ...failed, flows: [1, 2] }], true).flow).toBeUndefined();
});
