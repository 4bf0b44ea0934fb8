/**
 * Names that can be read from any distance.
 *
 * Theory of operation. Text within the canvas shrinks with it. Below the scale at which a name would be smaller than anybody reads, it
 * grows within its box by as much as the canvas shrinks (`--nearer` in graph.css), and what stands below it goes; a name that has not
 * the room loses letters from its middle, since names of many tasks differ at their ends. Below the scale at which even one line is
 * higher than its box, only states are shown, and bunches and frames keep their words and counts at the size in which they are read.
 */
import { lookOf } from "../../ui/palette";

export const NAME = 14; // pixels at scale 1: --size-text of base.css
export const NOTE = 11; // what stands below a name, and beside a line: --size-note
export const READ_MIN = 9; // pixels on the screen
const BOX = 36; // within the borders of a box: no name is higher
const STEPS = 6; // for each halving of the scale: text is not laid out anew at each turn of the wheel

export const SMALL = READ_MIN / NAME; // below this scale names grow
export const FAR = (READ_MIN / BOX) * 2 ** (1 / STEPS); // below this scale they have no room

/** By how much text of a canvas at this scale must grow, in steps, never too little. */
export function nearer(zoom: number): number {
  return zoom >= SMALL ? 1 : 2 ** (Math.ceil(Math.log2(SMALL / zoom) * STEPS) / STEPS);
}

/** The end of a name that is always shown: its number, or a few letters. */
const TAIL = 4;
export const headAndTail = (name: string): [string, string] => (name.length <= TAIL ? ["", name] : [name.slice(0, -TAIL), name.slice(-TAIL)]);

export const isFailed = (state: string): boolean => lookOf(state).shape === lookOf("failed").shape;

/** How many have each state, what failed first, then what is most frequent. */
export function countsText(states: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const state of states) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].sort(([a, m], [b, n]) => Number(isFailed(b)) - Number(isFailed(a)) || n - m).map(([state, count]) => `${count} ${state}`).join(" · ");
}
