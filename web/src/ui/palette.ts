/** How each state looks: colour and shape, the same as on the command line (palette.json is written from there). */
import tables from "./palette.json";

export interface Look {
  colour: string;
  shape: string;
}

export type Kind = "tasks" | "runs" | "statuses";

const UNKNOWN: Look = { colour: "#8a8f98", shape: "·" };

export function lookOf(state: string, kind: Kind = "tasks"): Look {
  return (tables[kind] as Record<string, Look>)[state] ?? UNKNOWN;
}

/** Every state of a task, in the order in which counts are shown. */
export const TASK_STATES: readonly string[] = [
  "running",
  "submitted",
  "preparing",
  "ready",
  "waiting",
  "failed",
  "submit-failed",
  "expired",
  "succeeded",
  "ended",
  "lost",
  "not taken",
  "removed",
  "future",
];
