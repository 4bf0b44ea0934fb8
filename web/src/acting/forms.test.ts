import { expect, test } from "vitest";
import { commandOf, FORMS, type CommandForm, namedAtFirst } from "./forms";

const form = (id: string) => FORMS.find((one) => one.id === id) as CommandForm;

test.each([
  ["hold", { ids: "*/model*, MODELS:failed" }, { verb: "hold", ids: ["*/model*", "MODELS:failed"] }],
  ["trigger", { ids: "3/a", all_at_point: "yes" }, { verb: "trigger", ids: ["3/a"], all_at_point: true }],
  ["hold after", { after: " 3 " }, { verb: "hold", after: "3" }],
  ["release everything", {}, { verb: "release", everything: true }],
  ["broadcast", { settings: "[environment]A=1\n\nscript=true" }, { verb: "broadcast", settings: ["[environment]A=1", "script=true"] }],
  ["ext-trigger", { message: "new data" }, { verb: "ext-trigger", message: "new data" }],
])("%s is understood", (id, written, action) => {
  expect(commandOf(form(id), written)).toEqual(action);
});

test("nothing is asked for while something is missing", () => {
  expect(commandOf(form("hold"), { ids: "  " })).toBeNull();
  expect(commandOf(form("stop at"), { ids: "3/a" })).toBeNull();
});

test("a command begins with the tasks that are ticked or open", () => {
  expect(namedAtFirst(["1/a"])).toEqual({ ids: "1/a", id: "1/a", after_task: "1/a" });
  expect(namedAtFirst(["1/a", "1/b"])).toEqual({ ids: "1/a, 1/b" });
  expect(namedAtFirst([])).toEqual({ ids: "" });
});
