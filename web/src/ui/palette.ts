/** How each state looks: colour and shape, the same as on the command line (palette.json is written from there). */
import tables from "./palette.json";

export interface Look {
  colour: string;
  shape: string;
}

export type Kind = "tasks" | "runs" | "blocks" | "statuses";

const UNKNOWN: Look = { colour: "#8a8f98", shape: "·" };

/** What states and remarks mean, for whoever meets them for the first time. */
export const STATE_SAYS: Readonly<Record<string, string>> = {
  waiting: "It is in the pool, but not ready: it waits for other tasks, or is kept back (held, retrying, xtrigger, runahead)",
  ready: "It waits for room in its limit group, or until the run is resumed",
  preparing: "Its job waits for a worker, or its worker is starting it",
  submitted: "Its worker has submitted the job, but the job has not started",
  "submit-failed": "Its job could not be submitted",
  expired: "Its expiry time passed before it could run",
  ended: "It was triggered alone and has ended; no other task followed",
  lost: "It will not run: something that it needs failed",
  "not taken": "It will not run: the graph took another branch",
  removed: "An operator or a suicide arrow of the graph removed it",
  future: "It is in the graph, but not in the pool yet",
  incomplete: "It ended without the outputs that the graph requires: it stays until an operator acts",
  blocked: "It can only run if an operator repairs a task at another point",
  held: "An operator holds it: it is not submitted until it is released",
  retrying: "It failed, and will be retried after a delay",
  xtrigger: "It waits for a clock, or for something outside of the run",
  runahead: "It waits until earlier points are done",
  "by hand": "An operator triggered it",
};

/** A status of a block or a stage, as people read it. */
export const inWords = (status: string): string => status.replaceAll("_", " ");

export function lookOf(state: string, kind: Kind = "tasks"): Look {
  return (tables[kind] as Record<string, Look>)[state] ?? UNKNOWN;
}

/** Every status of a run. */
export const RUN_STATUSES: readonly string[] = Object.keys(tables.runs);

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
