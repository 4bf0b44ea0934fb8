/**
 * The letters of a log for a page: colours are shown, everything else that a terminal would obey is not.
 *
 * Links, titles, questions to the terminal, cursor moves and hidden text are taken out; control
 * characters and those that turn the direction of text are shown as what they are.
 */
import { plain } from "../../ui/plain";

export interface Style {
  readonly ink: string | null; // a colour of CSS
  readonly paper: string | null;
  readonly bold: boolean;
  readonly dim: boolean;
  readonly italic: boolean;
  readonly underline: boolean;
}

export interface Piece {
  text: string;
  style: Style;
}

export const PLAIN: Style = { ink: null, paper: null, bold: false, dim: false, italic: false, underline: false };

// In this order: strings for the terminal (ended by BEL or ST, or never), commands with a final letter, short ones.
const SEQUENCE = /(?:\u001b[\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)?|(?:\u001b\[|\u009b)([0-?]*)([ -/]*)([@-~])?|\u001b[ -/]*[0-~]?/g;

/** A line as pieces of one style each, and the style with which the next line begins. */
export function piecesOf(line: string, start: Style): { pieces: Piece[]; end: Style } {
  const shown = lastWriting(line);
  if (!/[\u001b\u0090-\u009f]/.test(shown)) {
    return { pieces: shown === "" ? [] : [{ text: plain(shown), style: start }], end: start };
  }
  const pieces: Piece[] = [];
  let style = start;
  let at = 0;
  const put = (text: string) => {
    if (text !== "") pieces.push({ text: plain(text), style });
  };
  for (const found of shown.matchAll(SEQUENCE)) {
    put(shown.slice(at, found.index));
    at = found.index + found[0].length;
    if (found[3] === "m" && found[2] === "") style = coloured(style, found[1] ?? "");
  }
  put(shown.slice(at));
  return { pieces, end: style };
}

export const textOf = (pieces: readonly Piece[]): string => pieces.map((piece) => piece.text).join("");

/** A carriage return goes back to the start of the line: what was written last is what a terminal shows. */
function lastWriting(line: string): string {
  if (!line.includes("\r")) return line;
  return line.split("\r").findLast((part) => part !== "") ?? "";
}

/** What "select graphic rendition" changes; numbers that hide, blink or turn colours round change nothing. */
function coloured(style: Style, parameters: string): Style {
  const codes = parameters.replaceAll(":", ";").split(";").map((one) => (one === "" ? 0 : Number(one)));
  let next = style;
  for (let place = 0; place < codes.length; place += 1) {
    const code = codes[place] ?? 0;
    if (code === 38 || code === 48) {
      const [colour, used] = longColour(codes.slice(place + 1));
      if (colour !== null) next = { ...next, [code === 38 ? "ink" : "paper"]: colour };
      place += used;
    } else next = simple(next, code);
  }
  return next;
}

function simple(style: Style, code: number): Style {
  if (code === 0) return PLAIN;
  if (code === 1) return { ...style, bold: true };
  if (code === 2) return { ...style, dim: true };
  if (code === 3) return { ...style, italic: true };
  if (code === 4) return { ...style, underline: true };
  if (code === 22) return { ...style, bold: false, dim: false };
  if (code === 23) return { ...style, italic: false };
  if (code === 24) return { ...style, underline: false };
  if (code >= 30 && code <= 37) return { ...style, ink: named(code - 30) };
  if (code >= 90 && code <= 97) return { ...style, ink: named(code - 82) };
  if (code === 39) return { ...style, ink: null };
  if (code >= 40 && code <= 47) return { ...style, paper: named(code - 40) };
  if (code >= 100 && code <= 107) return { ...style, paper: named(code - 92) };
  if (code === 49) return { ...style, paper: null };
  return style;
}

const named = (number: number): string => `var(--ansi-${number})`;

/** Behind 38 or 48: "5;N" of 256, "2;R;G;B"; how many numbers it took. */
function longColour(codes: readonly number[]): [string | null, number] {
  const [kind, ...rest] = codes;
  if (kind === 5) return [ofTable(byte(rest[0])), 2];
  if (kind === 2) {
    const [red, green, blue] = rest;
    return [`rgb(${byte(red)} ${byte(green)} ${byte(blue)})`, 4];
  }
  return [null, 1];
}

const byte = (value: number | undefined): number => (Number.isInteger(value) ? Math.min(255, Math.max(0, value ?? 0)) : 0);

function ofTable(number: number): string {
  if (number < 16) return named(number);
  if (number >= 232) {
    const grey = 8 + 10 * (number - 232);
    return `rgb(${grey} ${grey} ${grey})`;
  }
  const step = (value: number) => (value === 0 ? 0 : 55 + 40 * value);
  const place = number - 16;
  return `rgb(${step(Math.floor(place / 36))} ${step(Math.floor(place / 6) % 6)} ${step(place % 6)})`;
}
