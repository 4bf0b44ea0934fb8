import { expect, test } from "vitest";
import type { Statistics } from "../../api/storeTypes";
import { endings, sortedGroups } from "./statistics";
import { tokenBody, tokenWord } from "./tokens";
import { isActive, workerText, workerWord } from "./workers";

const NOW = Date.parse("2026-11-15T12:00:00Z");

test("a worker that is silent, stopped or in trouble says so", () => {
  const worker = { stopped_at: null, trouble: null, seen_at: "2026-11-15T11:59:50Z", leases: 0 };
  expect(workerWord(worker, NOW)).toBe("idle");
  expect(workerWord({ ...worker, leases: 2 }, NOW)).toBe("busy");
  expect(workerWord({ ...worker, trouble: "no space" }, NOW)).toBe("troubled");
  expect(workerWord({ ...worker, seen_at: "2026-11-15T11:50:00Z", trouble: "x" }, NOW)).toBe("silent");
  expect(workerWord({ ...worker, stopped_at: "2026-11-15T11:00:00Z" }, NOW)).toBe("stopped");
});

test("a worker that gave no sign of life for two heartbeats is silent, and since when is said", () => {
  const worker = { stopped_at: null, trouble: null, seen_at: "2026-11-15T11:59:41Z", leases: 1 };
  expect(workerText(worker, NOW)).toBe("busy");
  expect(workerText({ ...worker, seen_at: "2026-11-15T11:59:38Z" }, NOW)).toBe("silent for 22 s");
});

test("a worker that was killed does not count as active, one in trouble does", () => {
  const worker = { stopped_at: null, trouble: null, seen_at: "2026-11-15T11:59:50Z", leases: 0 };
  expect(isActive({ ...worker, trouble: "no space" }, NOW)).toBe(true);
  expect(isActive({ ...worker, seen_at: "2026-11-15T11:50:00Z" }, NOW)).toBe(false);
  expect(isActive({ ...worker, stopped_at: "2026-11-15T11:00:00Z" }, NOW)).toBe(false);
});

const figures = (attempts: number, success: number): Statistics => ({ attempts, ended_by: {}, success_rate: success, queue_seconds: null, run_seconds: null, memory_used_bytes: null, memory_used_of_asked: null, cpu_used_percent: null });

test("groups are sorted by what is asked for, the worst success first", () => {
  const groups = { b: figures(5, 0.5), a: figures(5, 1), c: figures(9, 0.9) };
  expect(sortedGroups(groups, "attempts").map(([name]) => name)).toEqual(["c", "a", "b"]);
  expect(sortedGroups(groups, "success").map(([name]) => name)).toEqual(["b", "c", "a"]);
  expect(sortedGroups(groups, "name").map(([name]) => name)).toEqual(["a", "b", "c"]);
});

test("ends have words, and a signal without one keeps its own", () => {
  expect(endings({ vanish: 1, time_out: 1, fail: 2, succeed: 3 }).map((one) => `${one.count} ${one.word}`)).toEqual(["3 succeeded", "2 failed", "1 ran too long", "1 vanish"]);
});

test("a token is good until it is revoked or has run out", () => {
  const token = { revoked_at: null, expires_at: null };
  expect(tokenWord(token, NOW)).toBe("good");
  expect(tokenWord({ ...token, expires_at: "2026-11-15T11:00:00Z" }, NOW)).toBe("over");
  expect(tokenWord({ revoked_at: "2026-11-15T11:00:00Z", expires_at: null }, NOW)).toBe("revoked");
});

test("what is not said of a token is left to the server", () => {
  expect(tokenBody({ name: " ci ", scopes: ["read"], names: "team-a, b*", lasts: "" })).toEqual({ name: "ci", scopes: ["read"], names: ["team-a", "b*"] });
});
