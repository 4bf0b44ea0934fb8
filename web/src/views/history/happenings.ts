/** What happened around a moment, as one list: batches and what people asked for, in their order. */
import type { PastBatch, PastCommand, PastDocument } from "../../api/past";
import { shownId } from "../../api/shown";

export type Happening = { kind: "batch"; at: string; key: string; batch: PastBatch } | { kind: "command"; at: string; key: string; command: PastCommand };

export function storyOf({ around, commands }: Pick<PastDocument, "around" | "commands">): Happening[] {
  const found: Happening[] = [
    ...around.map((batch): Happening => ({ kind: "batch", at: batch.at, key: `b${batch.batch}`, batch })),
    ...commands.map((command): Happening => ({ kind: "command", at: command.at, key: `c${command.number}`, command })),
  ];
  // A command comes before the batch that obeys it.
  return found.sort((a, b) => Date.parse(a.at) - Date.parse(b.at) || (a.kind === b.kind ? 0 : a.kind === "command" ? -1 : 1));
}

const OBEYED_MS_MAX = 1_000; // an answer is written with its batch
const ACTIVE = ["preparing", "submitted", "running"];
const ENDS = ["succeeded", "failed", "submit-failed", "expired"];
const USUAL = new Set(["expired", "submitted", "submit-failed", "started", "succeeded", "failed"]);

/** Who or what made the batch at hand happen, in words; people first. */
export function causesOf(past: Pick<PastDocument, "around" | "batch" | "commands" | "changed">): string[] {
  const place = past.around.findIndex((one) => one.batch === past.batch);
  const here = past.around[place];
  if (here === undefined) return [];
  const from = Date.parse(here.at);
  const until = Date.parse(past.around[place + 1]?.at ?? "") || Infinity;
  const asked = past.commands.filter(({ answered_at, refused }) => {
    const at = answered_at === null || refused !== null ? NaN : Date.parse(answered_at);
    return at >= from && at < Math.max(until, from + 1) && at - from <= OBEYED_MS_MAX;
  });
  const found = [...asked.map((one) => `${one.who} asked: ${commandText(one)}`), ...past.changed.flatMap(jobWords)];
  return found.length > 0 ? found : ["the scheduler continued; no job and no command caused this"];
}

/** What the job of a task did; nothing of tasks that only followed. */
function jobWords({ id, before, state, remarks, made }: PastDocument["changed"][number]): string[] {
  const said = made.filter((output) => !USUAL.has(output)).map((output) => `${shownId(id)} reported ${output}`);
  if (!ACTIVE.includes(before)) return said;
  if (ENDS.includes(state)) return [...said, `${shownId(id)} ${state === "submit-failed" ? "could not be submitted" : state}`];
  if (state === "running" && before !== "running") return [...said, `${shownId(id)} began to run`];
  if (state === "submitted" && before === "preparing") return [...said, `${shownId(id)} was submitted`];
  if (remarks.includes("retrying")) return [...said, `${shownId(id)} failed and is tried again`];
  return said;
}

/** The tasks that the batch at hand touched. */
export function touchedBy({ around, batch }: Pick<PastDocument, "around" | "batch">): Set<string> {
  const here = around.find((one) => one.batch === batch);
  return new Set(here === undefined ? [] : [...here.tasks.map((task) => task.id), ...here.left_pool]);
}

export function commandText({ verb, arguments: given }: Pick<PastCommand, "verb" | "arguments">): string {
  const said = Object.entries(given)
    .filter(([, value]) => value !== null && value !== "" && value !== false && !(Array.isArray(value) && value.length === 0))
    .map(([name, value]) => (name === "ids" && Array.isArray(value) ? value.join(" ") : `${name}=${valueText(value)}`));
  return [verb, ...said].join(" ");
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return value.map(valueText).join(",");
  return typeof value === "string" ? value : JSON.stringify(value);
}
