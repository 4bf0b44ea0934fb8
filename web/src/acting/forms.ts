/** Commands that name their tasks by words: globs, families and states, or the run as a whole. */
import type { Action } from "../api/types";

interface Field {
  name: string;
  label: string;
  example: string;
  kind: "text" | "list" | "lines" | "tick";
  required?: boolean;
}

export interface CommandForm {
  id: string;
  title: string;
  says: string;
  verb: string;
  fields: readonly Field[];
  given?: Readonly<Record<string, unknown>>; // what this form means without being asked
}

const ids: Field = { name: "ids", label: "Tasks", example: "3/model, */post*, MODELS:failed", kind: "list", required: true };
const beyond: Field = { name: "all_at_point", label: "also tasks that are outside the pool", example: "", kind: "tick" };

export const FORMS: readonly [CommandForm, ...CommandForm[]] = [
  { id: "trigger", verb: "trigger", title: "Trigger", says: "Run tasks now, whatever they wait for.", fields: [ids, beyond] },
  { id: "set", verb: "set", title: "Set outputs", says: "Complete outputs by hand, as if the tasks had run.", fields: [ids, beyond] },
  { id: "hold", verb: "hold", title: "Hold", says: "Keep tasks from being submitted, even tasks that do not exist yet.", fields: [ids] },
  { id: "hold after", verb: "hold", title: "Hold after a point", says: "Hold all tasks after this point: they are not submitted until they are released.", fields: [{ name: "after", label: "Point", example: "3", kind: "text", required: true }] },
  { id: "release", verb: "release", title: "Release", says: "Let held tasks run.", fields: [ids] },
  { id: "release everything", verb: "release", title: "Release everything", says: "Release every held task, and end the hold on tasks after a point.", fields: [], given: { everything: true } },
  { id: "kill", verb: "kill", title: "Kill", says: "End the jobs of active tasks. These tasks fail without retries and are held.", fields: [ids] },
  { id: "poll", verb: "poll", title: "Poll", says: "Check the state of the jobs of tasks now.", fields: [ids] },
  { id: "remove", verb: "remove", title: "Remove", says: "Take tasks out of the pool; if a task is not in the pool, forget that it ran. Tasks that need a removed task will not run.", fields: [ids] },
  { id: "stop at", verb: "stop", title: "Stop at a point", says: "Continue until all tasks up to and including this point are done, then stop.", fields: [{ name: "at_point", label: "Point", example: "3", kind: "text", required: true }] },
  { id: "stop after", verb: "stop", title: "Stop after a task", says: "Continue until this task has ended, then stop.", fields: [{ name: "after_task", label: "Task", example: "3/model", kind: "text", required: true }] },
  {
    id: "ext-trigger", verb: "ext-trigger", title: "Report an outside event", says: "Of the tasks that wait for this message, the one at the earliest point gets it.",
    fields: [{ name: "message", label: "Message", example: "new data", kind: "text", required: true }, { name: "trigger_id", label: "Event ID", example: "file-0815", kind: "text" }],
  },
  {
    id: "message", verb: "message", title: "Send a message for a job", says: "Send a text or an output for a job that cannot send it itself.",
    fields: [{ name: "id", label: "Task", example: "3/model", kind: "text", required: true }, { name: "output", label: "Output", example: "half", kind: "text" }, { name: "texts", label: "Messages, one per line", example: "WARNING: the disk is slow", kind: "lines" }],
  },
  {
    id: "broadcast", verb: "broadcast", title: "Broadcast settings", says: "Change settings of tasks that are submitted from now on.",
    fields: [
      { name: "settings", label: "Settings, one per line", example: "[environment]DEBUG=1", kind: "lines", required: true },
      { name: "namespaces", label: "Tasks or families", example: "all (root)", kind: "list" },
      { name: "points", label: "Points", example: "all (*)", kind: "list" },
    ],
  },
];

/** In a run of stages nobody has written a point. */
export const formsFor = (stages: boolean): readonly CommandForm[] => (stages ? FORMS.filter(({ id }) => id !== "hold after" && id !== "stop at") : FORMS);

/** What the fields for tasks have before anything is written. */
export function namedAtFirst(ids: readonly string[]): Record<string, string> {
  const [only] = ids;
  return { ids: ids.join(", "), ...(only !== undefined && ids.length === 1 ? { id: only, after_task: only } : {}) };
}

/** What was written, as a command; null while something is missing. */
export function commandOf(form: CommandForm, written: Readonly<Record<string, string>>): Action | null {
  const action: Action = { verb: form.verb, ...form.given };
  for (const { name, kind, required } of form.fields) {
    const text = (written[name] ?? "").trim();
    if (text === "") {
      if (required) return null;
    } else if (kind === "tick") action[name] = true;
    else if (kind === "list") action[name] = text.split(/[\s,]+/).filter(Boolean);
    else if (kind === "lines") action[name] = text.split("\n").map((line) => line.trim()).filter(Boolean);
    else action[name] = text;
  }
  return action;
}
