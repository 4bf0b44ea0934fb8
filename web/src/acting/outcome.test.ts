import { expect, test } from "vitest";
import { doneText, endText } from "./outcome";

const rows = (...found: [string, number, string][]) => new Map(found.map(([id, submit, state]) => [id, { submit, state }]));
const before = rows(["1/a", 1, "failed"], ["1/b", 1, "failed"]);

test("nothing is said to have ended before every task has", () => {
  expect(endText(rows(["1/a", 2, "failed"], ["1/b", 1, "failed"]), before)).toBeNull();
  expect(endText(rows(["1/a", 2, "failed"], ["1/b", 2, "running"]), before)).toBeNull();
  expect(endText(rows(), rows())).toBeNull();
});

test("tasks that fail once more are told so", () => {
  expect(endText(rows(["1/a", 2, "failed"], ["1/b", 2, "failed"]), before)).toBe("2 tasks triggered: 2 failed again");
  expect(endText(rows(["1/a", 2, "succeeded"], ["1/b", 3, "failed"]), before)).toBe("2 tasks triggered: 1 succeeded, 1 failed again");
});

test("what the scheduler did is counted by its answer", () => {
  expect(doneText({ verb: "trigger", ids: ["1/*"] }, { tasks: { "1/a": 1, "1/b": 1 } })).toBe("2 tasks triggered");
  expect(doneText({ verb: "hold", ids: ["1/a"] }, { tasks: { "1/a": null } })).toBe("Hold 1/a: accepted by the scheduler");
  expect(doneText({ verb: "pause" }, {})).toBe("Pause: accepted by the scheduler");
});

test("a command that changed nothing is told so, with what was seen", () => {
  const held = { tasks: { "1/a": null }, unchanged: { "1/a": "it is held already" } };
  expect(doneText({ verb: "hold", ids: ["1/a"] }, held)).toBe("Hold 1/a: nothing was changed: it is held already");
  expect(doneText({ verb: "release", ids: ["1/*"] }, { tasks: { "1/a": null, "1/b": null, "1/c": null }, unchanged: { "1/a": "it is not held" } })).toBe("2 tasks released, 1 unchanged");
  expect(doneText({ verb: "resume" }, { tasks: {}, changed: false, notices: ["it is not paused"] })).toBe("Resume: nothing was changed");
});
