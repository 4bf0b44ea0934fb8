/** What of a text in the palette is a command: what can be done at once, or what can come next. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { ask } from "../acting/asking";
import { verbOf } from "../acting/verbs";
import { runRowsQuery } from "../api/finding";
import { currentLive } from "../api/runLive";
import { useMay } from "../api/session";
import type { Action, RunFacts, TaskRows } from "../api/types";
import { isPossible, urgency } from "../pages/runOrder";
import { countText } from "../ui/quantities";
import { commandFor, commandText, completions, readCommand, verbsLike, type Tasks, type Typed } from "./commands";
import type { Found } from "./found";

const RUNS_MAX = 6;

interface Commands {
  found: Found[];
  /** Enter waits for it. */
  isLoading: boolean;
  /** Why nothing is offered. */
  says: string;
}

const NOTHING: Commands = { found: [], isLoading: false, says: "" };

/** `runs`: all that are known, also by this text. */
export function useCommands(text: string, runs: readonly RunFacts[]): Commands {
  const may = useMay("operate");
  const navigate = useNavigate();
  const typed = may ? readCommand(text) : null;
  const open = currentLive()?.snapshot().run ?? null;
  const candidates = typed === null ? [] : fitting(typed, runs, open);
  const target = typed !== null && !typed.isOfRun && (typed.run !== null || open !== null) ? candidates[0] : undefined;
  const { data, error } = useQuery({ ...runRowsQuery(target?.name ?? ""), enabled: target !== undefined });
  /** On another run's page that of this run is opened first: what is shown there is about one run alone. */
  const act = (run: string, action: Action) => () => {
    ask(run, action);
    if (open !== null && open.name !== run) void navigate({ to: "/runs/$run", params: { run } });
  };
  if (typed === null) {
    return may ? { ...NOTHING, found: verbsLike(text).map((one): Found => ({ key: `verb ${one.text}`, title: one.text.trim(), kind: one.says, complete: one.text })) } : NOTHING;
  }
  if (typed.isOfRun) {
    return {
      ...NOTHING,
      found: candidates.map((run): Found => ({ key: `act ${run.name}`, title: `${typed.verb.button} ${run.name}`, kind: run.status, state: [run.status, "runs"], go: act(run.name, { verb: typed.verb.verb }) })),
      says: `${typed.verb.button} does not apply to any run${typed.run === null ? "" : ` with ${typed.run} in its name`} now.`,
    };
  }
  const others = candidates.filter((run) => run !== target).map((run) => toward(typed, run));
  if (target === undefined) return { ...NOTHING, found: others, says: "No run has this name." };
  if (error !== null) return { ...NOTHING, found: others, says: error.message };
  if (data === undefined) return { ...NOTHING, isLoading: true };
  const here = ofRun(typed, target.name, data, act);
  return { ...NOTHING, ...here, found: [...here.found, ...others] };
}

/** Those that a command can be about: one that is called exactly so alone, else the open one and those that need action first. */
function fitting({ verb, isOfRun, run }: Typed, runs: readonly RunFacts[], open: RunFacts | null): RunFacts[] {
  const wanted = run?.toLowerCase() ?? "";
  const possible = runs.filter((one) => !one.reason.startsWith("aborted by ") && (!isOfRun || isPossible(verb.verb, one)));
  if (run === null && !isOfRun && open !== null) return possible.filter((one) => one.name === open.name);
  const exact = possible.find((one) => one.name.toLowerCase() === wanted);
  if (exact !== undefined) return [exact];
  const order = (one: RunFacts) => (one.name === open?.name ? -1 : urgency(one, undefined));
  return possible.filter((one) => one.name.toLowerCase().includes(wanted)).sort((a, b) => order(a) - order(b)).slice(0, RUNS_MAX);
}

function toward(typed: Typed, run: RunFacts): Found {
  const text = commandText(typed, typed.what, run.name);
  return { key: `in ${run.name}`, title: text, kind: run.status, state: [run.status, "runs"], complete: typed.what === "" ? `${text.slice(0, -` in ${run.name}`.length)}  in ${run.name}` : text };
}

function ofRun(typed: Typed, run: string, told: TaskRows, act: (run: string, action: Action) => () => void): Pick<Commands, "found" | "says"> {
  const hasEnded = told.run.status === "completed" || told.run.status === "stopped";
  const tasks: Tasks = { rows: told.tasks, nodes: told.nodes, hasEnded };
  const action = commandFor(typed, tasks);
  const next = completions(typed, run, tasks).map((one): Found => ({ key: `word ${one.text}`, title: one.text, kind: one.says, complete: one.text }));
  const says = typed.what === "" ? `${typed.verb.button} does not apply to any task of ${run} now.` : `${typed.verb.button} applies to no task of ${run} that matches “${typed.what}”.`;
  if (action === null) return { found: next, says };
  return { found: [{ key: "act", title: titleOf(action), kind: `in ${run}`, go: act(run, action) }, ...next], says };
}

function titleOf(action: Action): string {
  const ids = action.ids ?? [];
  const what = action.everything === true ? "everything" : ids.length === 1 ? ids[0] : ids.length <= 3 ? ids.join(", ") : `${countText(ids.length, "task")}: ${ids.slice(0, 3).join(", ")} …`;
  return `${verbOf(action.verb).button} ${what}`;
}

