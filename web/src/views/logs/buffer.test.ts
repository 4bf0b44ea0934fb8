import { expect, test } from "vitest";
import { LINE_BYTES_MAX, LogBuffer } from "./buffer";
import { attemptsOf, choose } from "./choice";
import { marked, textsOf } from "./finding";
import { likeness, rankOf } from "./levels";
import { readPicked, rowsOf, writePicked } from "./rows";
import { piecesOf, PLAIN } from "./ansi";

const bytes = (text: string) => new TextEncoder().encode(text);
const texts = (buffer: LogBuffer) => buffer.shown.map((line) => line.text);

test("lines are put together, however they are cut", () => {
  const whole = bytes("one\ntwö\n\nthree ☃");
  for (let cut = 0; cut <= whole.length; cut += 1) {
    const buffer = new LogBuffer();
    buffer.begin(whole.subarray(0, cut), 0);
    buffer.append(whole.subarray(cut));
    expect(texts(buffer)).toEqual(["one", "twö", "", "three ☃"]);
    expect([buffer.start, buffer.end]).toEqual([0, whole.length]);
  }
});

test("from the middle of a file, the first line that is whole comes first", () => {
  const buffer = new LogBuffer();
  buffer.begin(bytes("alf\nnext\n"), 100);
  expect(texts(buffer)).toEqual(["next"]);
  expect(buffer.start).toBe(104);
  buffer.prepend(bytes("rest\nthe first h"), 88);
  expect(texts(buffer)).toEqual(["the first h", "next"]);
  expect(buffer.start).toBe(93);
});

test("a part that lies within one long line is shown, and what is before it can be reached", () => {
  const buffer = new LogBuffer();
  buffer.begin(bytes(`${"x".repeat(3 * LINE_BYTES_MAX)}\n`), 1_000_000);
  expect(texts(buffer).join("")).toBe("x".repeat(3 * LINE_BYTES_MAX));
  const before = buffer.start;
  buffer.prepend(bytes(`${"y".repeat(2 * LINE_BYTES_MAX)}\n`), before - 2 * LINE_BYTES_MAX - 1);
  expect(texts(buffer)[0]?.startsWith("y")).toBe(true);
  expect(buffer.start).toBeLessThan(before);
});

test("a log without end stays within its limits, and the newest lines are kept", () => {
  const buffer = new LogBuffer(10_000, 100_000);
  for (let number = 0; number < 5_000; number += 1) buffer.append(bytes(`line ${number}\n`));
  expect(buffer.end - buffer.start).toBeLessThanOrEqual(10_000);
  expect(buffer.lines.reduce((sum, line) => sum + line.text.length, 0)).toBeLessThanOrEqual(10_000);
  expect(buffer.lines.at(-1)?.text).toBe("line 4999");
  expect(buffer.lines[0]?.at).toBe(buffer.start);
});

test("many empty lines are bounded by their number", () => {
  const buffer = new LogBuffer(1_000_000, 1_000);
  buffer.append(bytes("\n".repeat(5_000)));
  expect(buffer.lines.length).toBeLessThanOrEqual(1_000);
});

test("a line without end goes on in further lines", () => {
  const buffer = new LogBuffer();
  buffer.append(bytes("é".repeat(LINE_BYTES_MAX)));
  const found = texts(buffer);
  expect(found.length).toBeGreaterThan(1);
  expect(found.join("")).toBe("é".repeat(LINE_BYTES_MAX));
});

test("a colour goes on in the next line, across parts", () => {
  const buffer = new LogBuffer();
  buffer.append(bytes("\u001b[32mgreen\n"));
  buffer.append(bytes("still\u001b[0m\nplain\n"));
  expect(buffer.lines.map((line) => line.start.ink)).toEqual([null, "var(--ansi-2)", null]);
});

test("texts are marked behind colours and across pieces, also those between the stars of a pattern", () => {
  const buffer = new LogBuffer();
  buffer.append(bytes("nothing\nan \u001b[31mEr\u001b[1mror\u001b[0m here\n"));
  const { pieces } = piecesOf(buffer.lines[1]?.text ?? "", PLAIN);
  const marks = marked(pieces, textsOf("error", "text"));
  expect(marks.filter((one) => one.found).map((one) => one.text)).toEqual(["Er", "ror"]);
  expect(marks.map((one) => one.text).join("")).toBe("an Error here");
  expect(marked(pieces, textsOf("error", "text"), true).some((one) => one.found)).toBe(false);
  expect(marked(pieces, textsOf("AN*here", "glob")).filter((one) => one.found).map((one) => one.text)).toEqual(["an", "here"]);
});

test("the attempt that the address names is shown, if it is of this task", () => {
  const attempt = (number: number) => ({ attempt: number, ended_by: "fail", exit_status: 1 });
  const choices = attemptsOf([{ submit: 1, attempts: [attempt(1), attempt(2)] }, { submit: 2, attempts: [] }] as unknown as Parameters<typeof attemptsOf>[0]);
  expect(choices.map((one) => one.key)).toEqual(["1.2", "1.1"]);
  expect(choose(choices, "1/a", "1/a:1.1")?.key).toBe("1.1");
  expect(choose(choices, "1/a", "1/b:1.1")?.key).toBe("1.2");
  expect(choose([], "1/a", "")).toBeUndefined();
});

test("lines have the numbers that they have in the file, whatever part of it is held", () => {
  const buffer = new LogBuffer(200, 100);
  buffer.begin(bytes("f\nseven\neight\n"), 100);
  expect(rowsOf(buffer, 0).map((row) => row.number)).toEqual([null, null]);
  expect(buffer.know(102, 7)).toBe(true);
  expect(rowsOf(buffer, 0).map((row) => row.number)).toEqual([7, 8]);
  expect(buffer.know(108, 8) && buffer.number).toBe(7);
  buffer.prepend(bytes("x\nfive\nsix\n"), 90);
  expect(rowsOf(buffer, 0).map((row) => row.number)).toEqual([5, 6, 7, 8]);
  for (let number = 9; number < 60; number += 1) buffer.append(bytes(`line ${number}\n`));
  for (const row of rowsOf(buffer, 0)) if (row.number !== null && row.number > 8) expect(row.text).toBe(`line ${row.number}`);
  expect(buffer.know(0, 1)).toBe(false);
});

test("the rest of a long line has no number of its own", () => {
  const buffer = new LogBuffer();
  buffer.begin(bytes(`${"x".repeat(LINE_BYTES_MAX + 10)}\nnext\n`), 0);
  buffer.number = 1;
  expect(rowsOf(buffer, 0).map((row) => row.number)).toEqual([1, null, 2]);
});

test.each([
  ["2026-11-18T05:00:00Z DEBUG - waiting", 0],
  ["INFO:root:begun", 1],
  ["2026-11-18 05:00:02,123 - model - WARNING - full", 2],
  ["[05:00:03] WARN late", 2],
  ["\u001b[31mERROR\u001b[0m gone", 3],
  ["FATAL: no disk", 4],
  ["No ERROR was found", null],
  ["INFORMATION", null],
  ["", null],
])("the level of %o is known", (line, rank) => {
  expect(rankOf(line)).toBe(rank);
});

test("a line without a level belongs to the one before it, and is information where there is none", () => {
  const buffer = new LogBuffer();
  buffer.begin(bytes("plain\nERROR: x\n  Traceback\nDEBUG: y\nz\n"), 0);
  expect(rowsOf(buffer, 1).map((row) => row.text)).toEqual(["plain", "ERROR: x", "  Traceback"]);
  expect(rowsOf(buffer, 3).map((row) => row.text)).toEqual(["ERROR: x", "  Traceback"]);
});

test.each([
  ["2026-11-18T05:00:00Z ERROR - CFL violated at step 381", "CFL violated at step *"],
  ["[05:00:03] wrote 3/7 files, 1.5 MB", "wrote * files, * MB"],
  ["  Segmentation fault", "Segmentation fault"],
  ["12345", "12345"],
])("what is like %o is found by %o", (line, expected) => {
  expect(likeness(line)).toBe(expected);
});

test("picked lines are those of one log", () => {
  expect(readPicked(writePicked("1/a:b", "out", { from: 3, to: 9 }), "1/a:b", "out")).toEqual({ from: 3, to: 9 });
  expect(readPicked("run:out:7", "", "out")).toEqual({ from: 7, to: 7 });
  for (const [text, id] of [["1/a:out:7", "1/b"], ["1/a:err:7", "1/a"], ["1/a:out:0", "1/a"], ["1/a:out:x", "1/a"], ["", "1/a"]] as const) {
    expect(readPicked(text, id, "out")).toBeNull();
  }
});
