/** How a worker is, in one word. */
import { SIGN_SECONDS_MAX, type WorkerFacts } from "../../api/storeTypes";
import { durationText, secondsBetween } from "../../ui/time";

const SILENT_SECONDS = 2 * SIGN_SECONDS_MAX; // what is shown may be a few seconds old

export function workerWord(worker: Pick<WorkerFacts, "stopped_at" | "trouble" | "seen_at" | "leases">, now: number): string {
  if (worker.stopped_at !== null) return "stopped";
  if (now - Date.parse(worker.seen_at) > SILENT_SECONDS * 1_000) return "silent";
  if (worker.trouble !== null) return "troubled";
  return worker.leases > 0 ? "busy" : "idle";
}

/** The same for people: of a silent one, for how long. */
export function workerText(worker: Pick<WorkerFacts, "stopped_at" | "trouble" | "seen_at" | "leases">, now: number): string {
  const word = workerWord(worker, now);
  return word === "silent" ? `silent for ${durationText(Math.round(secondsBetween(worker.seen_at, now)))}` : word;
}

/** Says whether a worker takes tasks; one that was killed is only silent. */
export function isActive(worker: Parameters<typeof workerWord>[0], now: number): boolean {
  return !["stopped", "silent"].includes(workerWord(worker, now));
}
