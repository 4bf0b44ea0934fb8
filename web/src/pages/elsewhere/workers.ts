/** How a worker is, in one word. */
import type { WorkerFacts } from "../../api/storeTypes";

const SILENT_SECONDS = 90; // three times as long as a worker is ever silent

export function workerWord(worker: Pick<WorkerFacts, "stopped_at" | "trouble" | "seen_at" | "leases">, now: number): string {
  if (worker.stopped_at !== null) return "stopped";
  if (now - Date.parse(worker.seen_at) > SILENT_SECONDS * 1_000) return "silent";
  if (worker.trouble !== null) return "troubled";
  return worker.leases > 0 ? "busy" : "idle";
}

/** Says whether a worker takes tasks; one that was killed is only silent. */
export function isActive(worker: Parameters<typeof workerWord>[0], now: number): boolean {
  return !["stopped", "silent"].includes(workerWord(worker, now));
}
