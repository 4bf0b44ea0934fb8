/** The verbs of operators in the words of buttons; the same verbs as on the command line. */
import { isOfStages, shortId, shownId } from "../api/shown";
import type { Action, TaskRow } from "../api/types";

export interface Verb {
  verb: string;
  button: string;
  says: string; // of what it does, in one sentence
  danger?: boolean;
  /** For which tasks it makes sense; left out: for the run. */
  fits?: (row: Pick<TaskRow, "state" | "remarks" | "in_pool">) => boolean;
}

const ACTIVE = ["preparing", "submitted", "running"];
const isActive = (row: { state: string }) => ACTIVE.includes(row.state);

export const TASK_VERBS: readonly Verb[] = [
  { verb: "trigger", button: "Trigger", says: "Run now, whatever it waits for.", fits: (row) => !isActive(row) },
  { verb: "set", button: "Set outputs", says: "Complete its outputs by hand, as if it had run.", fits: (row) => row.state !== "succeeded" },
  { verb: "hold", button: "Hold", says: "Keep it from being submitted.", fits: (row) => !row.remarks.includes("held") && !isActive(row) },
  { verb: "release", button: "Release", says: "Allow it to run.", fits: (row) => row.remarks.includes("held") },
  { verb: "kill", button: "Kill", says: "End its job. The task fails without retries and is held.", danger: true, fits: isActive },
  { verb: "poll", button: "Poll", says: "Check the state of its job now.", fits: isActive },
  { verb: "remove", button: "Remove", says: "Take it out of the pool. Tasks that need it will not run.", danger: true, fits: (row) => row.in_pool && !isActive(row) },
];

/** These reopen a run that has ended; every other verb needs one that is driven. */
const REOPENING = ["trigger", "set", "release"];

export const taskVerbs = (hasEnded: boolean): readonly Verb[] => (hasEnded ? TASK_VERBS.filter(({ verb }) => REOPENING.includes(verb)) : TASK_VERBS);

export const UNWELL = ["failed", "submit-failed", "expired"];

/** A verb for some tasks. What failed in a run that has ended is triggered in its flow: alone it would run, and still count as failed. */
export function actionFor(verb: string, rows: readonly Pick<TaskRow, "id" | "state" | "flows">[], hasEnded: boolean): Action {
  const ids = rows.map((row) => row.id);
  const flows = new Set(rows.flatMap((row) => row.flows));
  const [flow] = flows;
  if (verb !== "trigger" || !hasEnded || flow === undefined || flows.size !== 1 || !rows.every((row) => UNWELL.includes(row.state))) return { verb, ids };
  return { verb, ids, flow: String(flow) };
}

export const RUN_VERBS: readonly Verb[] = [
  { verb: "pause", button: "Pause", says: "No more jobs are submitted; running jobs continue." },
  { verb: "resume", button: "Resume", says: "The run submits jobs again." },
  { verb: "stop", button: "Stop", says: "Nothing more is submitted, and the run stops. It can be continued later.", danger: true },
  { verb: "run", button: "Continue", says: "A scheduler continues the run." },
  { verb: "reload", button: "Reload definition", says: "Read the definition again." },
];

const OTHER_VERBS: readonly Verb[] = [
  { verb: "ext-trigger", button: "Report", says: "Of the tasks that wait for this message, the one at the earliest point gets it." },
  { verb: "message", button: "Send", says: "The message counts as if the job had sent it." },
  { verb: "broadcast", button: "Broadcast", says: "Tasks that are submitted from now on have these settings." },
];

export function verbOf(name: string): Verb {
  const found = [...TASK_VERBS, ...RUN_VERBS].find((one) => one.verb === name) ?? OTHER_VERBS.find((one) => one.verb === name);
  return found ?? { verb: name, button: name, says: "" };
}

/** Of what a command does, in one sentence: a verb with other fields may do something else. */
export function saysOf(action: Action): string {
  if (typeof action.after === "string") return "Hold all tasks after this point: they are not submitted until they are released.";
  if (action.everything === true) return "Release every held task, and end the hold on tasks after a point.";
  if (typeof action.at_point === "string") return "Continue until all tasks up to and including this point are done, then stop.";
  if (typeof action.after_task === "string") return "Continue until this task has ended, then stop.";
  if (action.prerequisites?.length) return "These prerequisites count as met.";
  return verbOf(action.verb).says;
}

/** Of commands that are about more than tasks with names; null of others. */
function wholeText(action: Action): string | null {
  const text = (field: string) => (typeof action[field] === "string" ? action[field] : "");
  if (text("after") !== "") return `Hold everything after ${text("after")}`;
  if (action.everything === true) return "Release everything";
  if (text("at_point") !== "") return `Stop at ${text("at_point")}`;
  if (text("after_task") !== "") return `Stop after ${text("after_task")}`;
  if (action.verb === "ext-trigger") return `Report “${text("message")}”`;
  if (action.verb === "message") return `Send a message for ${text("id")}`;
  if (action.verb === "broadcast") return "Broadcast settings";
  return null;
}

/** "a · 02Z succeeded" of "20261116T0200Z/a:succeeded". */
function shortAtom(atom: string): string {
  const colon = atom.lastIndexOf(":");
  const id = colon < 0 ? atom : atom.slice(0, colon);
  return shortId(id) === id ? atom : [shortId(id), ...(colon < 0 ? [] : [atom.slice(colon + 1)])].join(" ");
}

/** "Trigger 1/model", "Hold 3 tasks", "Satisfy 1/a for 1/b"; with `whole` ids that can be copied. */
export function actionText(action: Action, whole = false): string {
  const shown = whole ? shownId : shortId;
  const { ids = [] } = action;
  const stages = isOfStages();
  const what = ids.length === 0 ? "" : ids.length === 1 ? ` ${shown(ids[0] ?? "")}` : ` ${ids.length} ${stages ? "stages" : "tasks"}`;
  const prerequisites = action.prerequisites;
  const other = wholeText(action);
  if (other !== null) return other;
  if (action.verb === "set" && prerequisites?.length) return `Satisfy ${prerequisites.map((one) => (stages ? one.replace(/:succeeded$/, "") : whole ? one : shortAtom(one))).join(", ")} for${what}`;
  const bounds = [...((action.until_tasks as string[] | undefined) ?? []), ...(typeof action.until === "string" && action.until !== "" ? [`point ${action.until}`] : [])];
  const flow = stages ? (action.flow === "new" ? " and everything after it" : "") : action.flow === "new" ? ` in a new flow${bounds.length > 0 ? ` until ${bounds.join(", ")}` : ""}` : /^\d/.test(action.flow ?? "") ? ` in flow ${action.flow}` : "";
  const outputs = action.outputs;
  const word = action.verb === "set" ? `Set ${outputs?.length ? outputs.join(", ") : "outputs"} of` : verbOf(action.verb).button;
  return `${word}${what}${flow}`;
}
