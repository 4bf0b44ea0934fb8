import { expect, test } from "vitest";
import { piecesOf, PLAIN, textOf } from "./ansi";

const shown = (line: string) => textOf(piecesOf(line, PLAIN).pieces);
const styles = (line: string) => piecesOf(line, PLAIN).pieces.map(({ text, style }) => [text, style.ink, style.paper]);

test.each([
  ["\u001b[31mred\u001b[0m", [["red", "var(--ansi-1)", null]]],
  ["a\u001b[1;92mb", [["a", null, null], ["b", "var(--ansi-10)", null]]],
  ["\u001b[38;5;196mx", [["x", "rgb(255 0 0)", null]]],
  ["\u001b[38;5;244mx", [["x", "rgb(128 128 128)", null]]],
  ["\u001b[38;2;1;2;999mx", [["x", "rgb(1 2 255)", null]]],
  ["\u001b[48:5:4mx\u001b[49my", [["x", null, "var(--ansi-4)"], ["y", null, null]]],
])("colours of %o are shown", (line, expected) => {
  expect(styles(line)).toEqual(expected);
});

test.each([
  ["\u001b]8;;javascript:alert(1)\u0007click\u001b]8;;\u0007", "click"],
  ["\u001b]0;title\u001b\\x", "x"],
  ["\u001b]52;c;cm0gLXJm\u0007x", "x"],
  ["\u001b[2J\u001b[1;1Hx\u001b[6n", "x"],
  ["\u001bPq#0\u001b\\x\u001b_G\u001b\\y", "xy"],
  ["\u009b31mx\u009d0;t\u009cy", "xy"],
  ["\u001b[8mhidden\u001b[7mturned", "hiddenturned"],
  ["\u001bcx\u001b(By", "xy"],
  ["\u001b]0;never ends", ""],
  ["\u001b[", ""],
])("what a terminal would obey in %o is not there", (line, expected) => {
  expect(shown(line)).toBe(expected);
});

test("letters that are not seen are shown as what they are", () => {
  expect(shown("a\u202eb\u0008\u0000\u2066")).toBe("a⟦U+202E⟧b␈␀⟦U+2066⟧");
});

test("a line that was written over shows its last writing", () => {
  expect(shown("10 %\r50 %\r100 %\r")).toBe("100 %");
});

test("numbers that hide text or turn it round change no style", () => {
  expect(styles("\u001b[8;7;5mx")).toEqual([["x", null, null]]);
});

test("a colour never holds a text of the log", () => {
  for (const line of ["\u001b[38;2;url(x);1;1mx", "\u001b[38;5;<>mx", "\u001b[38;9;1mx"]) {
    for (const [, ink] of styles(line)) expect(ink ?? "rgb(0 0 0)").toMatch(/^(rgb\(\d+ \d+ \d+\)|var\(--ansi-\d+\))$/);
  }
});
