import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { NAME, NOTE } from "../views/graph/legible";

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

const css = new Map(files.map((file) => [file, readFileSync(new URL(file, SOURCES), "utf8").replace(/\/\*[\s\S]*?\*\//g, "")]));

test("type has five sizes, and no file has another one", () => {
  const base = css.get("ui/base.css") ?? "";
  const sizes = new Map([...base.matchAll(/--size-(\w+): (\d+)px/g)].map(([, name = "", size]) => [name, Number(size)]));
  expect([...sizes.keys()]).toEqual(["note", "small", "text", "head", "title"]);
  // Of these, or of these times what letters in a drawing grow by.
  const names = [...sizes.keys()].join("|");
  const allowed = new RegExp(`^(inherit|var\\(--size-(${names})\\)|(calc|min)\\(var\\(--size-(${names})\\) \\* var\\(--nearer, 1\\)[^a-z]*(, var\\(--size-title\\))?\\))$`);
  const others = [...css].flatMap(([file, text]) => [...text.matchAll(/font-size:\s*([^;}]+)/g)].map(([, size = ""]) => size.trim()).filter((size) => !allowed.test(size)).map((size) => `${file}: ${size}`));
  expect(others).toEqual([]);
  const whole = [...css].flatMap(([file, text]) => [...text.matchAll(/[\s{;]font:\s*([^;}]+)/g)].map(([, font = ""]) => font.trim()).filter((font) => font !== "inherit" && !font.startsWith("var(--size-text)/")).map((font) => `${file}: ${font}`));
  expect(whole).toEqual([]);
  // Boxes of the graph are as wide as their letters, which are measured before they are drawn.
  expect(sizes.get("text")).toBe(NAME);
  expect(sizes.get("note")).toBe(NOTE);
});

test("no script sets a size of type", () => {
  const scripts = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file) && !file.includes(".test."));
  expect(scripts.filter((file) => /fontSize/.test(readFileSync(new URL(file, SOURCES), "utf8")))).toEqual([]);
});
