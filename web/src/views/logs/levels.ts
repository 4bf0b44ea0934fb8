/** Levels of lines, known as the server knows them; a line without one belongs to that before it. */
import { HEAD_LENGTH, LEVEL_PATTERN, LEVELS, PLAIN_RANK, SAME_LEVELS } from "../../api/generated/log_lines";
import { piecesOf, PLAIN, textOf } from "./ansi";

const LEVEL = new RegExp(LEVEL_PATTERN);

/** From the least on, as the address and the server have them. */
export const LEVEL_WORDS = LEVELS.map((level) => level.toLowerCase());
export const WARNING_RANK = LEVELS.indexOf("WARNING");

/** The place of a line's level among all; null if it names none. */
export function rankOf(line: string): number | null {
  const head = line.slice(0, 4 * HEAD_LENGTH);
  const text = /[\u001b\u0090-\u009f\r]/.test(head) ? textOf(piecesOf(head, PLAIN).pieces) : head;
  const word = LEVEL.exec(text.slice(0, HEAD_LENGTH))?.[1];
  if (word === undefined) return null;
  return LEVELS.indexOf((SAME_LEVELS as Record<string, (typeof LEVELS)[number]>)[word] ?? (word as (typeof LEVELS)[number]));
}

/** The same for each line, with those that it belongs to; null: no line before it has one. */
export function ranksOf(lines: readonly { text: string }[]): (number | null)[] {
  let rank: number | null = null;
  return lines.map(({ text }) => (rank = rankOf(text) ?? rank));
}

export const isShown = (rank: number | null, least: number): boolean => (rank ?? PLAIN_RANK) >= least;

/** For a style: nothing below a warning needs one. */
export const levelClass = (rank: number | null): string => (rank === null || rank === PLAIN_RANK ? "" : ` level-${LEVEL_WORDS[rank] ?? ""}`);

/** What of a line may stand in other logs, too: without time and level, any number for each of its numbers. */
export function likeness(line: string): string {
  const said = line.replace(/^[[(<]?\d{2,4}[-/:.]\d[\d\-/:.,TZ+ ]*[\])>]?\s*/, "").replace(LEVEL, "").replace(/^[\s\-:|\])>]+/, "").trim();
  const like = said.replace(/\d+/g, "*").replace(/\*[*.,:/]*\*/g, "*");
  return (/[^*\s]{2}/.test(like) ? like : line.trim()).slice(0, 300);
}
