import { expect, test } from "vitest";
import { placeAfter, squareText, taskGrid } from "./grid";

const task = (point: string, name: string, state = "succeeded", remarks: string[] = []) => ({ id: `${point}/${name}`, point, name, state, remarks, in_pool: remarks.length > 0 });
const families = (name: string) => (name.startsWith("m") ? ["ENSEMBLE", "root"] : name.startsWith("p") ? ["PRODS", "root"] : ["root"]);
const members = (point: string) => Array.from({ length: 12 }, (_, number) => task(point, `m${number}`));

test("a line for each name, a column for each point; a family of many is one line", () => {
  const rows = [task("2", "a"), task("10", "a", "running"), ...members("2"), task("2", "p1"), task("10", "p2", "failed", ["incomplete"])];
  const { points, lines } = taskGrid(rows, families, () => false);
  expect(points).toEqual(["2", "10"]);
  expect(lines.map((line) => [line.kind, line.name, line.members, line.open, line.within])).toEqual([
    ["task", "a", 0, false, false], ["family", "ENSEMBLE", 12, false, false], ["family", "PRODS", 2, true, false], ["task", "p1", 0, false, true], ["task", "p2", 0, false, true],
  ]);
  expect(lines[0]?.squares.get("10")).toMatchObject({ state: "running", id: "10/a", alarm: false });
  expect(lines[2]?.squares.get("10")).toMatchObject({ state: "failed", id: null, alarm: true });
});

test("what somebody toggled is open or closed instead", () => {
  const rows = [...members("1"), task("1", "p1"), task("1", "p2")];
  expect(taskGrid(rows, families, () => true).lines.map((line) => line.name)).toEqual(["ENSEMBLE", ...members("1").map((one) => one.name), "PRODS"]);
});

test("a square is told in words: of a task its state, of a family how many have which", () => {
  const rows = [...members("1"), task("1", "m12", "failed")];
  const [line] = taskGrid(rows, families, () => false).lines;
  expect(line && [squareText(line, "1", line.squares.get("1")), squareText(line, "2", undefined)]).toEqual(["1/ENSEMBLE: 12 succeeded, 1 failed", "2/ENSEMBLE: no task"]);
});

test("keys lead from square to square and never out of the grid", () => {
  const from = (key: string, ctrl = false) => placeAfter(key, ctrl, { line: 1, column: 1 }, 3, 4, 10);
  expect([from("ArrowDown"), from("ArrowLeft"), from("PageDown"), from("End"), from("Home", true), from("x")]).toEqual([
    { line: 2, column: 1 }, { line: 1, column: 0 }, { line: 2, column: 1 }, { line: 1, column: 3 }, { line: 0, column: 0 }, null,
  ]);
});
