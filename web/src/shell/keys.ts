/**
 * Every key of the page, once: shortcuts, the list of `?`, tooltips and docs/page.md follow from this table.
 *
 * A key without an action here (`by`) is heard by the widget that has the focus, and stands here to be told.
 */
import { VIEWS } from "../views/registry";
import { PLACES } from "./places";

export interface Key {
  id: string;
  keys: string; // "g r": one after the other; "Control+k"; "ArrowUp ArrowDown" with `by` "widget": any of them
  says: string;
  /** What these keys of a task do: the first verb that fits it. */
  verbs?: readonly string[];
  by?: "widget";
}

export interface KeyGroup {
  title: string;
  keys: readonly Key[];
}

export const KEY_GROUPS: readonly KeyGroup[] = [
  {
    title: "Anywhere",
    keys: [
      { id: "palette", keys: "Control+k", says: "Search and act: runs, tasks, queues, pages, commands" },
      { id: "help", keys: "?", says: "Show these keys" },
      { id: "filter", keys: "/", says: "Filter by name" },
      { id: "next failure", keys: "n", says: "Go to the next run or task that needs action" },
      { id: "previous failure", keys: "p", says: "Go to the previous run or task that needs action" },
      { id: "close", keys: "Escape", says: "Close the task, the dialog, the menu or the wall screen" },
      { id: "theme", keys: "d", says: "Dark or light" },
    ],
  },
  {
    title: "For the ticked tasks, or for the current task",
    keys: [
      { id: "trigger", keys: "t", says: "Trigger", verbs: ["trigger"] },
      { id: "hold", keys: "h", says: "Hold or release", verbs: ["release", "hold"] },
      { id: "kill", keys: "k", says: "Kill its job", verbs: ["kill"] },
      { id: "set", keys: "o", says: "Set outputs", verbs: ["set"] },
      { id: "command", keys: "c", says: "Any other command" },
      { id: "why", keys: "w", says: "Why it does not run: go to its panel" },
      { id: "log", keys: "l", says: "Show its log" },
    ],
  },
  {
    title: "Grid, lists, graph, tree and table",
    keys: [
      { id: "move", keys: "Arrows", says: "Move; in a graph, along its edges; in a tree, also open and close a line", by: "widget" },
      { id: "ends", keys: "Home End", says: "First or last", by: "widget" },
      { id: "open", keys: "Enter", says: "Open", by: "widget" },
      { id: "tick", keys: "Space", says: "Tick a task, to give one command to several tasks", by: "widget" },
      { id: "confirm", keys: "Control+Enter", says: "Confirm the dialog", by: "widget" },
    ],
  },
  { title: "Go to a page", keys: PLACES.map(({ to, title, keys }): Key => ({ id: to, keys, says: title })) },
  { title: "Show a view of the run", keys: VIEWS.map(({ id, title, keys }): Key => ({ id: `view ${id}`, keys, says: title })) },
  {
    title: "Logs and history",
    keys: [
      { id: "search log", keys: "s", says: "Search in the log" },
      { id: "batch back", keys: "[", says: "History: one batch back" },
      { id: "batch on", keys: "]", says: "History: one batch forward" },
      { id: "play", keys: "v p", says: "History: play or pause" },
    ],
  },
];

const BY_ID: ReadonlyMap<string, Key> = new Map(KEY_GROUPS.flatMap(({ keys }) => keys).map((one) => [one.id, one]));

export function keyOf(id: string): Key {
  const found = BY_ID.get(id);
  if (found === undefined) throw new Error(`${id} is not in the table of keys`);
  return found;
}

/** Those that give a command. */
export const VERB_KEYS: readonly Key[] = [...BY_ID.values()].filter(({ verbs }) => verbs !== undefined);

/** "Ctrl K" as people read it. */
export const shownKeys = (keys: string): string => keys.replace("Control+Enter", "Ctrl Enter").replace("Control+k", "Ctrl K").replace("Escape", "Esc");

/** A tooltip with the key that does the same. */
export const withKey = (text: string, id: string): string => `${text} (${shownKeys(keyOf(id).keys)})`.trim();

/** The key of a verb's button; null: it has none. */
export const keyOfVerb = (verb: string): Key | null => VERB_KEYS.find(({ verbs = [] }) => verbs.includes(verb)) ?? null;

/** As docs/page.md has it. */
export function keysTable(): string {
  const code = (keys: string) => shownKeys(keys).split(" ").map((one) => `\`${one}\``).join(" ");
  const lines = KEY_GROUPS.flatMap(({ title, keys }) => [`| **${title}** | |`, ...keys.map((one) => `| ${code(one.keys)} | ${one.says} |`)]);
  return ["| Key | What it does |", "|---|---|", ...lines].join("\n");
}
