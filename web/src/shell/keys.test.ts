import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { TASK_VERBS } from "../acting/verbs";
import { KEY_GROUPS, keyOfVerb, keysTable, VERB_KEYS } from "./keys";

const ALL = KEY_GROUPS.flatMap(({ keys }) => keys);

test("no two keys are the same, and none begins a sequence of two", () => {
  const keys = ALL.filter(({ by }) => by !== "widget").map((one) => one.keys);
  expect(new Set(keys).size).toBe(keys.length);
  for (const one of keys) expect(keys.filter((other) => other.startsWith(`${one} `))).toEqual([]);
});

test("keys that give commands give those that buttons have", () => {
  const known = TASK_VERBS.map(({ verb }) => verb);
  for (const { verbs = [] } of VERB_KEYS) for (const verb of verbs) expect(known).toContain(verb);
  expect(keyOfVerb("trigger")?.keys).toBe("t");
});

test("docs/page.md has this table", () => {
  expect(readFileSync(`${import.meta.dirname}/../../../docs/page.md`, "utf8")).toContain(keysTable());
});
