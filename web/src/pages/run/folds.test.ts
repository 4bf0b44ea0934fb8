import { expect, test } from "vitest";
import { FOLD_MIN, folded, foldState, foldText, isMapped } from "./folds";

const element = (number: number, state = "succeeded", point = "1") => ({ id: `${point}/process_file${number}`, point, name: `process_file${number}`, state });
const elements = (count: number, point = "1") => Array.from({ length: count }, (_, number) => element(number, "succeeded", point));
const families = (name: string) => (name.startsWith("process_") ? ["process<file>", "root"] : ["root"]);
const fold = (tasks: ReturnType<typeof element>[], unfolded: string[] = [], stays: string[] = []) => folded(tasks, families, (id) => unfolded.includes(id), (id) => stays.includes(id));

test("many elements of a mapped task at a point are one, few are not, and other tasks never are", () => {
  const { folds, foldOf } = fold([...elements(200), ...elements(FOLD_MIN - 1, "2"), { ...element(0), id: "1/list", name: "list" }]);
  expect([...folds.keys()]).toEqual(["1/process<file>"]);
  expect(foldOf.size).toBe(200);
  expect([isMapped("process<file>"), isMapped("MODELS")]).toEqual([true, false]);
});

test("what went wrong, and what somebody looks at, is shown by itself and counted all the same", () => {
  const tasks = elements(200).map((one, number) => (number % 20 === 7 ? { ...one, state: "failed" } : one));
  const { folds, foldOf } = fold(tasks, [], ["1/process_file3"]);
  const alone = tasks.map((one) => one.id).filter((id) => !foldOf.has(id));
  expect(alone).toEqual([3, 7, 27, 47, 67, 87].map((number) => `1/process_file${number}`));
  const [found] = folds.values();
  expect(found && [foldText(found), foldState(found)]).toEqual(["200 elements: 10 failed, 190 succeeded", "failed"]);
});

test("what somebody has opened is not folded", () => {
  expect(fold(elements(200), ["1/process<file>"]).foldOf.size).toBe(0);
});

test("families are folded where that is asked for, each as its nearest, and never all tasks as one", () => {
  const member = (name: string, state = "waiting") => ({ id: `1/${name}`, point: "1", name, state });
  const of = (name: string) => (name.startsWith("m") ? ["ENSEMBLE", "MODELS", "root"] : ["root"]);
  const tasks = [member("m1"), member("m2", "failed"), member("m3"), member("alone"), member("other")];
  const { folds, foldOf } = folded(tasks, of, () => false, () => false, true);
  expect([...folds.values()].map(foldText)).toEqual(["3 tasks: 1 failed, 2 waiting"]);
  expect([...foldOf]).toEqual([["1/m1", "1/ENSEMBLE"], ["1/m3", "1/ENSEMBLE"]]);
  expect(folded(tasks, of, () => false, () => false).folds.size).toBe(0);
});
