/** Where a text stands in a line of a log. */
import { textOf, type Piece } from "./ansi";

export interface Mark extends Piece {
  found: boolean;
}

/** What of a line is marked: a text, or the texts between the stars of a pattern. */
export const textsOf = (text: string, match: "text" | "glob"): string[] => (match === "glob" ? text.split("*") : [text]).filter((one) => one !== "");

/** The pieces of a line, cut where the texts begin and end. */
export function marked(pieces: readonly Piece[], texts: readonly string[], withCase = false): Mark[] {
  if (texts.length === 0) return pieces.map((piece) => ({ ...piece, found: false }));
  const folded = (text: string) => (withCase ? text : text.toLowerCase());
  const text = folded(textOf(pieces));
  const cuts = new Set<number>();
  const inside: [number, number][] = [];
  for (const wanted of texts.map(folded)) {
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
      inside.push([at, at + wanted.length]);
      cuts.add(at).add(at + wanted.length);
    }
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
