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
