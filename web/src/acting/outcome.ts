/** What became of a command: what the scheduler did at once, and of tasks that were triggered how they ended. */
import type { LiveState, RunLive } from "../api/live";
import { currentLive } from "../api/runLive";
import { taskWord } from "../api/shown";
import type { Action, TaskRow } from "../api/types";
import { countText } from "../ui/quantities";
import { say } from "../ui/toasts";
import { actionText } from "./verbs";

const FOLLOWED_MAX_MS = 30 * 60_000; // by then nobody waits for the message any more
const OVER = ["succeeded", "failed", "submit-failed", "expired", "ended", "removed"];
const BAD = ["failed", "submit-failed"];
const DEEDS: Readonly<Record<string, string>> = { trigger: "triggered", set: "updated", hold: "held", release: "released", remove: "removed", kill: "told to end", poll: "polled" };

export type Submits = ReadonlyMap<string, Pick<TaskRow, "submit" | "state">>;

/** How the tasks of a command are before it is given. */
export function submitsOf(action: Action): Submits {
  const live = currentLive();
  return new Map((action.ids ?? []).flatMap((id) => {
    const row = live?.row(id);
    return row === undefined ? [] : [[id, { submit: row.submit, state: row.state }] as const];
  }));
}

/** "63 tasks triggered"; of other commands which it was. Tasks are counted only where the answer names them. */
export function doneText(action: Action, answer: Readonly<Record<string, unknown>>): string {
  const deed = DEEDS[action.verb];
  const tasks = answer.tasks;
  const count = typeof tasks === "object" && tasks !== null ? Object.keys(tasks).length : 0;
  const unchanged = Object.entries((answer.unchanged ?? {}) as Readonly<Record<string, string>>);
  if (count > 0 && unchanged.length === count) return `${actionText(action)}: nothing was changed: ${unchanged[0]?.[1]}`;
  if (unchanged.length > 0) return `${countText(count - unchanged.length, taskWord())} ${deed ?? "changed"}, ${unchanged.length} unchanged`;
  if (answer.changed === false && action.verb !== "reload") return `${actionText(action)}: nothing was changed`;
  if (deed === undefined || count < 2) return `${actionText(action)}: accepted by the scheduler`;
  return `${countText(count, taskWord())} ${deed}`;
}

/** "63 triggered: 60 succeeded, 3 failed again"; null while some are to come or under way. */
export function endText(rows: ReadonlyMap<string, Pick<TaskRow, "submit" | "state">>, before: Submits): string | null {
  const counts = new Map<string, number>();
  for (const [id, old] of before) {
    const row = rows.get(id);
    if (row === undefined || row.submit <= old.submit || !OVER.includes(row.state)) return null;
    const word = BAD.includes(row.state) && BAD.includes(old.state) ? `${row.state} again` : row.state;
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  if (counts.size === 0) return null;
  return `${countText(before.size, taskWord())} triggered: ${[...counts].map(([word, count]) => `${count} ${word}`).join(", ")}`;
}

/** Says what was done, and follows tasks that were triggered until it is known how they ended. */
export function tellOutcome(action: Action, answer: Readonly<Record<string, unknown>>, before: Submits): void {
  say(doneText(action, answer));
  const live = currentLive();
  if (live !== null && action.verb === "trigger" && before.size > 0) follow(live, before);
}

function follow(live: Pick<RunLive, "subscribe" | "snapshot">, before: Submits): void {
  let stop = () => {};
  const timer = window.setTimeout(() => stop(), FOLLOWED_MAX_MS);
  const look = () => {
    const state: LiveState = live.snapshot();
    const text = endText(new Map(state.rows.filter((row) => before.has(row.id)).map((row) => [row.id, row])), before);
    if (text === null) return;
    stop();
    say(text, text.includes("failed"));
  };
  const unsubscribe = live.subscribe(look);
  stop = () => {
    window.clearTimeout(timer);
    unsubscribe();
  };
  look();
}
