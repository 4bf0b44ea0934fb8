import { expect, test } from "vitest";
import { LINE_BYTES_MAX, LogBuffer } from "./buffer";
import { attemptsOf, choose } from "./choice";
import { linesWith, marked } from "./finding";
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

test("words are found behind colours, and marked across pieces", () => {
  const buffer = new LogBuffer();
  buffer.append(bytes("nothing\nan \u001b[31mEr\u001b[1mror\u001b[0m here\n"));
  expect(linesWith(buffer.lines, "error")).toEqual([1]);
  const { pieces } = piecesOf(buffer.lines[1]?.text ?? "", PLAIN);
  const marks = marked(pieces, "error");
  expect(marks.filter((one) => one.found).map((one) => one.text)).toEqual(["Er", "ror"]);
  expect(marks.map((one) => one.text).join("")).toBe("an Error here");
});

test("the attempt that the address names is shown, if it is of this task", () => {
  const attempt = (number: number) => ({ attempt: number, ended_by: "fail", exit_status: 1 });
  const choices = attemptsOf([{ submit: 1, attempts: [attempt(1), attempt(2)] }, { submit: 2, attempts: [] }] as unknown as Parameters<typeof attemptsOf>[0]);
  expect(choices.map((one) => one.key)).toEqual(["1.2", "1.1"]);
  expect(choose(choices, "1/a", "1/a:1.1")?.key).toBe("1.1");
  expect(choose(choices, "1/a", "1/b:1.1")?.key).toBe("1.2");
  expect(choose([], "1/a", "")).toBeUndefined();
});
