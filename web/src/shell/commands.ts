/**
 * Commands as they are typed into the palette: "trigger failed in wide", "hold 06Z ENSEMBLE", "pause wide".
 *
 * Verbs and what they fit are those of the buttons (`acting/verbs.ts`); which tasks are meant is looked up among those of the run,
 * so that what is offered can be done. Nothing is done here: what is chosen is shown with its dry run first.
 */
import { actionFor, RUN_VERBS, TASK_VERBS, taskVerbs, type Verb } from "../acting/verbs";
import type { Action, NodeFacts, TaskRow } from "../api/types";
import { globMatcher } from "../ui/globs";

export interface Typed {
  verb: Verb;
  isOfRun: boolean;
  /** Which tasks; of verbs for a whole run, nothing. */
  what: string;
  /** A part of the run's name; null: nothing was said of it. */
  run: string | null;
}

export interface Tasks {
  rows: readonly TaskRow[];
  nodes: Readonly<Record<string, NodeFacts>>;
  hasEnded: boolean;
}

/** A word that can come next, with what is known of it. */
export interface Completion {
  text: string; // all of what would be typed
  says: string;
}

const NAME = /^[\p{L}\p{N}_*?][^\s/:,]*$/u; // as definitions have them, or a glob
const ALL = ["all", "everything"];
const WORDS_MAX = 12;
/** By these, names stand for tasks to come as well. */
const LASTING = ["hold", "release"];

const wordsOf = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean);
/** "continue" and "run" are the same verb, as its button and the command line call it. */
const namesOf = ({ verb, button }: Verb): string[] => [...new Set([(button.split(" ")[0] ?? verb).toLowerCase(), verb])];

/** The command that a text begins with; null: it is none. */
export function readCommand(text: string): Typed | null {
  const [first = "", ...rest] = text.trimStart().split(/\s+/);
  const isOfRun = !TASK_VERBS.some((one) => namesOf(one).includes(first.toLowerCase()));
  const verb = [...TASK_VERBS, ...RUN_VERBS].find((one) => namesOf(one).includes(first.toLowerCase()));
  if (verb === undefined || !/\s/.test(text.trimStart())) return null;
  const said = rest.join(" ").trim();
  if (isOfRun) return { verb, isOfRun, what: "", run: said.replace(/^in\s+/, "") || null };
  const found = /^(.*?)(?:^|\s)in(?:\s+(\S*))?$/.exec(said);
  return found === null ? { verb, isOfRun, what: said, run: null } : { verb, isOfRun, what: (found[1] ?? "").trim(), run: found[2] ?? "" };
}

/** Verbs that begin with what was typed so far. */
export function verbsLike(text: string): Completion[] {
  const begun = text.trim().toLowerCase();
  if (begun === "" || /\s/.test(text.trim())) return [];
  return [...TASK_VERBS, ...RUN_VERBS].flatMap((one) => namesOf(one).filter((name) => name.startsWith(begun)).slice(0, 1).map((name) => ({ text: `${name} `, says: one.says })));
}

export const commandText = ({ verb: { button } }: Typed, what: string, run: string): string => [(button.split(" ")[0] ?? "").toLowerCase(), what, `in ${run}`].filter(Boolean).join(" ");

/** What is meant, as a command; null: no task fits. */
export function commandFor({ verb, what }: Typed, tasks: Tasks): Action | null {
  if (!taskVerbs(tasks.hasEnded).includes(verb)) return null;
  const words = wordsOf(what);
  if (words.length === 0) return null;
  if (verb.verb === "release" && words.length === 1 && ALL.includes(words[0] ?? "")) return { verb: "release", everything: true };
  const lasting = LASTING.includes(verb.verb) ? lastingIds(words, tasks, false) : [];
  if (lasting.length > 0) return { verb: verb.verb, ids: lasting };
  const named = meant(words, tasks);
  const rows = named.filter((row) => verb.fits?.(row) ?? true);
  if (rows.length > 0) return actionFor(verb.verb, rows, tasks.hasEnded);
  // Nothing is called so yet: whether it will come, the definition knows, and with it the server that is asked first.
  const toCome = verb.verb === "hold" && named.length === 0 ? lastingIds(words, tasks, true) : [];
  return toCome.length > 0 ? { verb: verb.verb, ids: toCome } : null;
}

/** Those that every word is about. */
export function meant(words: readonly string[], { rows, nodes }: Tasks): TaskRow[] {
  const tests = words.filter((word) => !ALL.includes(word)).map((word) => wordTest(word, rows, nodes));
  return rows.filter((row) => tests.every((test) => test(row)));
}

/** A state, an id, a name, a family or a point; what is none of these, a part of a name or a glob. */
function wordTest(word: string, rows: readonly TaskRow[], nodes: Tasks["nodes"]): (row: TaskRow) => boolean {
  const wanted = word.toLowerCase();
  const familiesOf = (row: TaskRow) => nodes[row.name]?.families ?? [];
  const exactly = (row: TaskRow) =>
    row.state === wanted || row.remarks.includes(wanted) || row.id.toLowerCase() === wanted || row.name.toLowerCase() === wanted || familiesOf(row).some((one) => one.toLowerCase() === wanted) || isPoint(word, row.point);
  if (rows.some(exactly)) return exactly;
  const like = globMatcher(word);
  return (row) => like(row.id) || like(row.name) || familiesOf(row).some(like);
}

/** A point as it is written, or its hour: 06Z is T06Z and T0600Z. */
export function isPoint(word: string, point: string): boolean {
  const hour = /^T?(\d\d)Z$/i.exec(word)?.[1];
  return point.toLowerCase() === word.toLowerCase() || (hour !== undefined && new RegExp(`T${hour}(00){0,2}Z$`, "i").test(point));
}

/**
 * Where only a name and a point were said: ids as they are written by hand. A task at a point may be one to come; families, and names
 * without a point, are those that are live. `unknown`: also a name that no task has had.
 */
function lastingIds(words: readonly string[], { rows, nodes }: Tasks, unknown: boolean): string[] {
  const names = new Map([...Object.values(nodes).flatMap(({ families }) => families), ...Object.keys(nodes)].map((name) => [name.toLowerCase(), name]));
  const points = [...new Set(rows.map((row) => row.point))];
  let name: string | undefined;
  let at: string[] | undefined;
  for (const word of words) {
    const known = names.get(word.toLowerCase()) ?? (unknown && NAME.test(word) && !points.some((point) => isPoint(word, point)) ? word : undefined);
    const fits = points.filter((point) => isPoint(word, point));
    if (known !== undefined && name === undefined) name = known;
    else if (fits.length > 0 && at === undefined) at = fits;
    else return [];
  }
  if (name === undefined) return [];
  const called = name;
  const isOfIt = (row: TaskRow) => unknown || row.name === called || nodes[row.name]?.families.includes(called) === true;
  const live = [...new Set(rows.filter((row) => row.in_pool && isOfIt(row)).map((row) => row.point))];
  const isTask = unknown || called in nodes;
  return (at === undefined ? live : isTask ? at : at.filter((point) => live.includes(point))).map((point) => `${point}/${called}`);
}

/** What the last word may become: states that are there, families, names and points; each with how many tasks it would take. */
export function completions(typed: Typed, run: string, tasks: Tasks): Completion[] {
  if (!taskVerbs(tasks.hasEnded).includes(typed.verb)) return [];
  const words = wordsOf(typed.what);
  const before = words.slice(0, -1);
  const begun = (words.at(-1) ?? "").toLowerCase();
  const fits = tasks.rows.filter((row) => typed.verb.fits?.(row) ?? true);
  const counts = new Map<string, number>([["all", fits.length]]);
  const add = (word: string) => counts.set(word, (counts.get(word) ?? 0) + 1);
  for (const row of meant(before, { ...tasks, rows: fits })) {
    for (const word of new Set([row.state, ...row.remarks, ...(tasks.nodes[row.name]?.families ?? []).filter((one) => one !== "root"), row.name, row.point])) add(word);
  }
  return [...counts]
    .filter(([word, count]) => count > 0 && !/\s/.test(word) && word.toLowerCase().startsWith(begun) && word.toLowerCase() !== begun && !before.includes(word))
    .slice(0, WORDS_MAX)
    .map(([word, count]) => ({ text: commandText(typed, [...before, word].join(" "), run), says: `${count} task${count === 1 ? "" : "s"}` }));
}
