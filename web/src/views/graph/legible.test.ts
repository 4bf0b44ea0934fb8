import { expect, test } from "vitest";
import { countsText, FAR, headAndTail, NAME, nearer, READ_MIN, SMALL } from "./legible";

test("a name is never smaller than what can be read, nor higher than its box, until it goes", () => {
  for (let zoom = 2; zoom >= FAR; zoom *= 0.97) {
    const name = NAME * nearer(zoom);
    expect(name * zoom).toBeGreaterThanOrEqual(READ_MIN - 1e-9);
    expect(name).toBeLessThanOrEqual(36 + 1e-9);
  }
});

test("text grows in steps: a turn of the wheel does not lay out every name anew", () => {
  const seen = new Set(Array.from({ length: 200 }, (_, turn) => nearer(SMALL * 2 ** (-turn / 200))));
  expect(seen.size).toBeLessThanOrEqual(7);
  expect(nearer(1.5)).toBe(1);
});

test("a name that is too long loses letters from its middle", () => {
  expect(headAndTail("member_07")).toEqual(["membe", "r_07"]);
  expect(headAndTail("post_m01")).toEqual(["post", "_m01"]);
  expect(headAndTail("prep")).toEqual(["", "prep"]);
});

test("a bunch says how many have each state, failures first", () => {
  const states = [...Array<string>(5).fill("succeeded"), "failed", "running", "running"];
  expect(countsText(states)).toBe("1 failed · 5 succeeded · 2 running");
});
