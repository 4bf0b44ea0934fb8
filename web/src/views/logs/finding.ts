/** Where a word stands in the lines of a log. */
import { piecesOf, textOf, type Piece } from "./ansi";
import type { LogLine } from "./buffer";

export interface Mark extends Piece {
  found: boolean;
}

/** The lines, by number, in which the words stand; letters of either case are the same. */
export function linesWith(lines: readonly LogLine[], words: string): number[] {
  const wanted = words.toLowerCase();
  if (wanted === "") return [];
  const found: number[] = [];
  lines.forEach((line, number) => {
    const text = /[\u001b\u0090-\u009f\r]/.test(line.text) ? textOf(piecesOf(line.text, line.start).pieces) : line.text;
    if (text.toLowerCase().includes(wanted)) found.push(number);
  });
  return found;
}

/** The pieces of a line, cut where the words begin and end. */
export function marked(pieces: readonly Piece[], words: string): Mark[] {
  const wanted = words.toLowerCase();
  if (wanted === "") return pieces.map((piece) => ({ ...piece, found: false }));
  const text = textOf(pieces).toLowerCase();
  const cuts = new Set<number>();
  const inside: [number, number][] = [];
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
    inside.push([at, at + wanted.length]);
    cuts.add(at).add(at + wanted.length);
  }
  const marks: Mark[] = [];
  let begins = 0;
  for (const piece of pieces) {
    const ends = begins + piece.text.length;
    const here = [begins, ...[...cuts].filter((cut) => cut > begins && cut < ends).sort((a, b) => a - b), ends];
    here.slice(0, -1).forEach((from, place) => {
      const to = here[place + 1] ?? ends;
      const found = inside.some(([first, last]) => from >= first && to <= last);
      marks.push({ text: piece.text.slice(from - begins, to - begins), style: piece.style, found });
    });
    begins = ends;
  }
  return marks;
}
