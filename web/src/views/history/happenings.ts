/** What happened around a moment, as one list: batches and what people asked for, in their order. */
import type { PastBatch, PastCommand, PastDocument } from "../../api/past";

export type Happening = { kind: "batch"; at: string; key: string; batch: PastBatch } | { kind: "command"; at: string; key: string; command: PastCommand };

export function storyOf({ around, commands }: Pick<PastDocument, "around" | "commands">): Happening[] {
  const found: Happening[] = [
    ...around.map((batch): Happening => ({ kind: "batch", at: batch.at, key: `b${batch.batch}`, batch })),
    ...commands.map((command): Happening => ({ kind: "command", at: command.at, key: `c${command.number}`, command })),
  ];
  // A command comes before the batch that obeys it.
  return found.sort((a, b) => Date.parse(a.at) - Date.parse(b.at) || (a.kind === b.kind ? 0 : a.kind === "command" ? -1 : 1));
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
