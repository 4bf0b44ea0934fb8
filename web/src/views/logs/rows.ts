/** The rows that a log is shown as: its lines with their numbers and levels, or those that a search has found. */
import { LEVELS } from "../../api/generated/log_lines";
import type { LogHit } from "../../api/generated/log_lines";
import { PLAIN, type Style } from "./ansi";
import type { LogBuffer, LogLine } from "./buffer";
import { isShown, rankOf } from "./levels";

export interface Row {
  readonly at: number;
  readonly text: string;
  readonly start: Style;
  readonly number: number | null; // null: not known yet, or it goes on with the line before
  readonly rank: number | null;
}

const ranks = new WeakMap<LogLine, number | null>();

function known(line: LogLine): number | null {
  const found = ranks.get(line);
  if (found !== undefined) return found;
  const rank = rankOf(line.text);
  ranks.set(line, rank);
  return rank;
}

/** The lines of at least one level; where none is named before, they are information. */
export function rowsOf(buffer: LogBuffer, least: number): Row[] {
  const rows: Row[] = [];
  let number = buffer.number;
  let rank: number | null = null;
  let begins = true;
  for (const line of buffer.shown) {
    if (begins) rank = known(line) ?? rank;
    if (least === 0 || isShown(rank, least)) rows.push({ at: line.at, text: line.text, start: line.start, number: begins ? number : null, rank });
    if (line.ended && number !== null) number += 1;
    begins = line.ended;
  }
  return rows;
}

export const rowsOfHits = (hits: readonly LogHit[]): Row[] =>
  hits.map((hit) => ({ at: hit.offset, text: hit.text, start: PLAIN, number: hit.line, rank: hit.level === null ? null : LEVELS.indexOf(hit.level as (typeof LEVELS)[number]) }));

/** Lines that somebody picked, as the address has them: "ID:FILE:120-130", "run:out:7". */
export interface Picked {
  from: number;
  to: number;
}

const whose = (id: string, file: string): string => `${id === "" ? "run" : id}:${file}:`;

/** Of another log than this they mean nothing. */
export function readPicked(text: string, id: string, file: string): Picked | null {
  const found = text.startsWith(whose(id, file)) ? /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(text.slice(whose(id, file).length)) : null;
  if (found === null) return null;
  const from = Number(found[1]);
  const to = Number(found[2] ?? found[1]);
  return from < 1 ? null : { from: Math.min(from, to), to: Math.max(from, to) };
}

export const writePicked = (id: string, file: string, { from, to }: Picked): string => `${whose(id, file)}${from === to ? from : `${from}-${to}`}`;
