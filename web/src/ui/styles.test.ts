import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const SOURCES = new URL("..", import.meta.url);
const files = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".css"));

/** Selectors of one file, without what is asked about the screen. */
function selectorsOf(text: string): string[] {
  const plain = text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/@(media|container)[^{]*\{/g, "").replace(/@keyframes[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}/g, "");
  return [...plain.matchAll(/([^{}]+)\{[^{}]*\}/g)].flatMap(([, found]) => (found ?? "").split(/,(?![^()]*\))/).map((one) => one.trim()));
}

test("what a page looks like does not depend on the pages that were seen before it", () => {
  // Files are loaded with the first page that needs them, and stay: of two rules for the same thing, the later one would win.
  const owners = new Map<string, string[]>();
  for (const file of files) {
    for (const selector of new Set(selectorsOf(readFileSync(new URL(file, SOURCES), "utf8")))) owners.set(selector, [...(owners.get(selector) ?? []), file]);
  }
  expect(owners.size).toBeGreaterThan(300);
  expect([...owners].filter(([, found]) => found.length > 1)).toEqual([]);
});
