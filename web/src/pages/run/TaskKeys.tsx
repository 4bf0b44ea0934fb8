/** Keys that do something with tasks: those that are ticked, or the one that has the focus, or the one that is open. */
import { useCallback } from "react";
import { useActing } from "../../acting/Acting";
import { actionFor, taskVerbs, verbOf } from "../../acting/verbs";
import { useEnded, useLiveStore, useMayAct } from "../../api/runLive";
import { shownId, taskWord } from "../../api/shown";
import { enterPanel } from "../../panel/entering";
import { keyOf, VERB_KEYS, type Key } from "../../shell/keys";
import { useShortcut } from "../../shell/shortcuts";
import { elementOf } from "../../ui/focus";
import { countText } from "../../ui/quantities";
import { say } from "../../ui/toasts";
import { taskAtFocus } from "./atFocus";
import { FUTURE } from "./BulkBar";
import { useTicks } from "./ticks";
import { failuresOf } from "./trouble";
import { useRunPage, useShowLog } from "./useRunPage";

/** The tasks that a key or a command is about, asked for when it is pressed. */
export function useMeant(): () => string[] {
  const { selected } = useRunPage();
  const { ticked } = useTicks();
  return useCallback(() => (ticked.size > 0 ? [...ticked] : [taskAtFocus() ?? selected].filter((one) => one !== null)), [selected, ticked]);
}

export function TaskKeys() {
  const { selected, select } = useRunPage();
  const { action, write } = useActing();
  const meant = useMeant();
  const live = useLiveStore();
  const showLog = useShowLog();
  const may = useMayAct() && action === null; // one command at a time
  const withTask = (id: string, run: (task: string) => void) => {
    const task = taskAtFocus() ?? selected;
    if (task === null) tellNone(id);
    else run(task);
  };
  const go = (by: 1 | -1) => {
    const failures = failuresOf(live.snapshot().rows).map((row) => row.id);
    const [next] = after(failures, taskAtFocus() ?? selected, by);
    if (next === undefined) {
      say(`No ${taskWord()} needs action.`);
      return;
    }
    select(next);
    focusTask(next);
  };
  useShortcut("next failure", () => go(1));
  useShortcut("previous failure", () => go(-1));
  useShortcut("why", () => withTask("why", (task) => { select(task); enterPanel(task); }));
  useShortcut("log", () => withTask("log", (task) => showLog(task, live.row(task)?.state === "failed" ? "err" : "out", "")));
  useShortcut("command", () => write(meant()), may);
  return may ? VERB_KEYS.map((one) => <VerbKey key={one.id} of={one} />) : null;
}

function VerbKey({ of: { id, verbs = [] } }: { of: Key }) {
  const { act } = useActing();
  const { clear } = useTicks();
  const meant = useMeant();
  const live = useLiveStore();
  const ended = useEnded();
  useShortcut(id, () => {
    const rows = meant().map((task) => live.row(task) ?? { id: task, ...FUTURE });
    if (rows.length === 0) {
      tellNone(id);
      return;
    }
    const possible = taskVerbs(ended !== null).filter(({ verb }) => verbs.includes(verb)).sort((a, b) => verbs.indexOf(a.verb) - verbs.indexOf(b.verb));
    for (const { verb, fits } of possible) {
      const those = rows.filter((row) => fits?.(row) ?? true);
      if (those.length === 0) continue;
      act(actionFor(verb, those, ended !== null), clear);
      return;
    }
    const [only] = rows;
    const what = only !== undefined && rows.length === 1 ? `${shownId(only.id)}, which is ${only.state}` : `any of ${countText(rows.length, taskWord())}`;
    say(`${verbs.map((verb) => verbOf(verb).button).join(" or ")} does not apply to ${what}${ended !== null ? `, in a run that is ${ended}` : ""}.`);
  });
  return null;
}

const tellNone = (id: string): void => say(`${keyOf(id).keys}: move to a ${taskWord()} with the arrow keys, or open one, then press this key again.`);

/** What comes behind (or before) where one is, around the end; of what is not among them, the first (or last). */
export function after(ids: readonly string[], at: string | null, by: 1 | -1): string[] {
  const place = at === null ? -1 : ids.indexOf(at);
  const next = place < 0 ? (by > 0 ? 0 : ids.length - 1) : (place + by + ids.length) % ids.length;
  const found = ids[next];
  return found === undefined ? [] : [found];
}

/** Its box in the graph, or the list that has its line. */
function focusTask(id: string): void {
  (elementOf(id) ?? document.querySelector<HTMLElement>(".run-views [role=tree], .run-views [role=grid]"))?.focus({ preventScroll: true });
}
