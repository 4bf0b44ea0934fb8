/**
 * Filters, as src/tidewheel/core/queue/filters.py reads them: PATTERN[:STATE[,STATE]…], or =TEXT.
 *
 * A pattern without *, ? and […] is a part of a name, one with any of them a whole name; neither minds capitals. A state may be cut short.
 * Nothing here takes longer than the length of pattern times name: a pattern may come with a link.
 */
import { plain } from "./plain";

export const FILTER_LENGTH_MAX = 200;
export const FILTER_HELP = "Part of a name, or a whole name with * ? [abc]. States follow a colon and may be shortened: img-*:failed, :fail. =TEXT matches exactly this name.";

/** One letter of a name: any (null), one of some, or none of some. */
type Letter = null | { not: boolean; ranges: [string, string][] };
const ANY_LETTERS = "*";

export interface Filter {
  /** Whether any of these names is meant, in one of these states. */
  fits: (names: readonly string[], states?: readonly string[]) => boolean;
  states: readonly string[] | null;
  /** What is wrong with it; then it fits everything. */
  problem: string;
}

export function readFilter(text: string, states: readonly string[] = []): Filter {
  const wanted = text.trim();
  const everything: Filter = { fits: () => true, states: null, problem: "" };
  if (wanted.length > FILTER_LENGTH_MAX) return { ...everything, problem: `A filter has at most ${FILTER_LENGTH_MAX} characters.` };
  if (wanted.startsWith("=")) return { ...everything, fits: (names) => names.includes(wanted.slice(1)) };
  const colon = wanted.lastIndexOf(":");
  const after = wanted.slice(colon + 1);
  if (colon < 0 || /^\d/.test(after)) return { ...everything, fits: anyOf(named(wanted)) };
  const isNamed = anyOf(named(wanted.slice(0, colon)));
  const words = after.split(",").map((word) => word.trim().toLowerCase()).filter(Boolean);
  const meant = new Set<string>();
  for (const word of words) {
    const found = states.filter(isGlob(word) ? whole(word) : (state) => state.startsWith(word));
    if (found.length === 0) return { ...everything, problem: `No state begins with “${plain(word)}”; the states are ${states.join(", ")}.` };
    for (const state of found) meant.add(state);
  }
  if (words.length === 0) return { ...everything, fits: isNamed };
  return { ...everything, states: [...meant], fits: (names, seen = []) => seen.some((state) => meant.has(state)) && isNamed(names) };
}

/** Names alone: nothing in them is a state. */
export function globMatcher(glob: string): (text: string) => boolean {
  const wanted = glob.trim();
  if (wanted.startsWith("=")) return (text) => text === wanted.slice(1);
  return named(wanted) ?? (() => true);
}

const anyOf = (fits: ((name: string) => boolean) | null) => (names: readonly string[]) => fits === null || names.some(fits);
const isGlob = (text: string): boolean => /[*?[]/.test(text);

function named(pattern: string): ((name: string) => boolean) | null {
  const wanted = pattern.toLowerCase();
  if (wanted === "") return null;
  return isGlob(wanted) ? whole(wanted) : (name) => name.toLowerCase().includes(wanted);
}

function whole(glob: string): (name: string) => boolean {
  const letters = lettersOf(glob);
  return (name) => isWhole(letters, Array.from(name.toLowerCase()));
}

function lettersOf(glob: string): (Letter | typeof ANY_LETTERS)[] {
  const found: (Letter | typeof ANY_LETTERS)[] = [];
  const signs = Array.from(glob);
  for (let at = 0; at < signs.length; at++) {
    const sign = signs[at] ?? "";
    const end = sign === "[" ? signs.indexOf("]", at + (signs[at + 1] === "!" ? 3 : 2)) : -1;
    if (sign === "*") found.push(ANY_LETTERS);
    else if (sign === "?") found.push(null);
    else if (end < 0) found.push({ not: false, ranges: [[sign, sign]] });
    else {
      const not = signs[at + 1] === "!";
      found.push({ not, ranges: rangesOf(signs.slice(at + (not ? 2 : 1), end)) });
      at = end;
    }
  }
  return found;
}

function rangesOf(signs: readonly string[]): [string, string][] {
  const found: [string, string][] = [];
  for (let at = 0; at < signs.length; at++) {
    const first = signs[at] ?? "";
    const last = signs[at + 1] === "-" && at + 2 < signs.length ? signs[at + 2] : undefined;
    found.push([first, last ?? first]);
    if (last !== undefined) at += 2;
  }
  return found;
}

function fitsLetter(letter: Letter, sign: string): boolean {
  return letter === null || letter.ranges.some(([first, last]) => first <= sign && sign <= last) !== letter.not;
}

/** Only the last * is ever tried again: what stood before it has been found already. */
function isWhole(letters: readonly (Letter | typeof ANY_LETTERS)[], signs: readonly string[]): boolean {
  let [at, sign, star, from] = [0, 0, -1, 0];
  while (sign < signs.length) {
    const letter = letters[at];
    if (letter === ANY_LETTERS) {
      [star, from] = [at++, sign];
    } else if (letter !== undefined && fitsLetter(letter, signs[sign] ?? "")) {
      at++;
      sign++;
    } else if (star >= 0) {
      at = star + 1;
      sign = ++from;
    } else return false;
  }
  while (letters[at] === ANY_LETTERS) at++;
  return at === letters.length;
}
