import { expect, test } from "vitest";
import { needsAction } from "./trouble";

test.each([
  [{ state: "failed", remarks: ["incomplete"], in_pool: true }, true],
  [{ state: "waiting", remarks: ["blocked"], in_pool: true }, true],
  [{ state: "failed", remarks: [], in_pool: false }, false], // the graph handled it
  [{ state: "running", remarks: [], in_pool: true }, false],
])("%o", (row, needs) => {
  expect(needsAction(row)).toBe(needs);
});
