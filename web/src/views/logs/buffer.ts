/** A part of a log as lines: a stretch of bytes that grows at both ends, and never beyond its limits. */
import { PLAIN, piecesOf, type Style } from "./ansi";

export interface LogLine {
  readonly at: number; // its first byte in the file
  readonly text: string;
  readonly start: Style;
  readonly ended: boolean; // by the end of a line; else the next one goes on with the same
}

export const LINE_BYTES_MAX = 8_192; // what is longer goes on in the next line
const NEWLINE = 10;

export class LogBuffer {
  lines: LogLine[] = [];
  /** The bytes that are held: [start, end). */
  start = 0;
  end = 0;
  /** The number of the line in which the first byte is; null until it is known. */
  number: number | null = null;
  private rest = new Uint8Array();
  private style: Style = PLAIN;
  private readonly decoder = new TextDecoder();

  constructor(readonly bytesMax = 6_000_000, readonly linesMax = 60_000) {}

  get isFull(): boolean {
    return this.end - this.start >= this.bytesMax || this.lines.length >= this.linesMax;
  }

  /** The line that is being written has no end yet. */
  get shown(): readonly LogLine[] {
    const { rest } = this;
    return rest.length === 0 ? this.lines : [...this.lines, { at: this.end - rest.length, text: this.decoder.decode(rest), start: this.style, ended: false }];
  }

  has(offset: number): boolean {
    return offset >= this.start && offset < this.end;
  }

  /** A line that begins at this byte has this number; false if it is not held. */
  know(offset: number, number: number): boolean {
    if (offset < this.start || offset > this.end) return false;
    this.number = number - ends(this.lines.slice(0, countBefore(this.lines, offset)));
    return true;
  }

  /** Begin anew; from the middle of a file, the first line is only known from its second on. */
  begin(bytes: Uint8Array, offset: number): void {
    const skipped = offset === 0 ? 0 : lineBegin(bytes);
    this.lines = [];
    this.number = null;
    this.rest = new Uint8Array();
    this.style = PLAIN;
    this.start = this.end = offset + skipped;
    this.append(bytes.subarray(skipped));
  }

  append(bytes: Uint8Array): void {
    const from = this.end - this.rest.length;
    this.end += bytes.length;
    const all = joined(this.rest, bytes);
    const { ends, lines } = this.split(all, from, this.style);
    this.rest = all.slice(ends);
    this.style = lines.length > 0 ? endStyle(lines[lines.length - 1]) : this.style;
    for (const line of lines) this.lines.push(line);
    this.forget();
  }

  /** Bytes that end where this stretch begins. */
  prepend(bytes: Uint8Array, offset: number): void {
    const skipped = offset === 0 ? 0 : lineBegin(bytes);
    const { lines } = this.split(bytes.subarray(skipped), offset + skipped, PLAIN, true);
    this.lines = [...lines, ...this.lines];
    if (this.number !== null) this.number -= ends(lines);
    this.start = offset + skipped;
  }

  private split(bytes: Uint8Array, from: number, style: Style, whole = false): { lines: LogLine[]; ends: number } {
    const lines: LogLine[] = [];
    let begins = 0;
    let now = style;
    for (;;) {
      const newline = bytes.indexOf(NEWLINE, begins);
      const long = (newline < 0 ? bytes.length : newline) - begins > LINE_BYTES_MAX;
      if (newline < 0 && !long && (!whole || begins === bytes.length)) break;
      const ends = long ? letterEnd(bytes, begins + LINE_BYTES_MAX) : newline < 0 ? bytes.length : newline;
      const text = this.decoder.decode(bytes.subarray(begins, ends));
      const line = { at: from + begins, text: text.endsWith("\r") ? text.slice(0, -1) : text, start: now, ended: !long && newline >= 0 };
      now = endStyle(line);
      lines.push(line);
      begins = long || newline < 0 ? ends : newline + 1;
    }
    return { lines, ends: begins };
  }

  /** The oldest lines go, a good part at once, so that this is not done for each. */
  private forget(): void {
    if (!this.isFull) return;
    const until = this.start + Math.floor((this.end - this.start) / 4);
    const kept = Math.max(this.lines.length - Math.floor(this.linesMax * 0.75), this.lines.findIndex((line) => line.at >= until));
    if (this.number !== null) this.number += ends(kept < 0 ? this.lines : this.lines.slice(0, kept));
    this.lines = kept < 0 ? [] : this.lines.slice(kept);
    this.start = this.lines[0]?.at ?? this.end - this.rest.length;
  }
}

const ends = (lines: readonly LogLine[]): number => lines.reduce((sum, line) => sum + (line.ended ? 1 : 0), 0);

/** How many lines begin before a byte; they stand in their order. */
export function countBefore(lines: readonly { at: number }[], offset: number): number {
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((lines[middle]?.at ?? 0) < offset) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Colours go on in the next line; most lines have none. */
function endStyle(line: LogLine | undefined): Style {
  if (line === undefined) return PLAIN;
  return line.text.includes("\u001b") || line.text.includes("\u009b") ? piecesOf(line.text, line.start).end : line.start;
}

/** Behind the rest of a line; of one that is longer than any line here, the rest is shown, from a whole letter on. */
function lineBegin(bytes: Uint8Array): number {
  const newline = bytes.indexOf(NEWLINE);
  if (newline >= 0 && newline <= LINE_BYTES_MAX) return newline + 1;
  let begin = 0;
  while (begin < 3 && ((bytes[begin] ?? 0) & 0xc0) === 0x80) begin += 1;
  return begin;
}

/** Not within a letter of several bytes. */
function letterEnd(bytes: Uint8Array, place: number): number {
  let end = place;
  while (end > place - 4 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return end;
}

function joined(head: Uint8Array, tail: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(head.length + tail.length);
  both.set(head);
  both.set(tail, head.length);
  return both;
}
