/** How an attempt ended, in words; the store has a signal for each. */

interface Ending {
  word: string;
  status: string; // of a task, for its colour and shape
}

/** The good ones first. */
const ENDINGS: Record<string, Ending> = {
  succeed: { word: "succeeded", status: "succeeded" },
  retry: { word: "failed, retries left", status: "failed" },
  fail: { word: "failed", status: "failed" },
  abort: { word: "failed, no retry allowed", status: "failed" },
  time_out: { word: "ran too long", status: "failed" },
  lapse: { word: "worker lost", status: "failed" },
  lapse_out: { word: "worker lost too many times", status: "failed" },
  cancel: { word: "cancelled", status: "cancelled" },
  yield: { word: "given back by its worker", status: "ready" },
};

export const SIGNALS: readonly string[] = Object.keys(ENDINGS);

/** A signal that has no word here keeps its own; what is no signal, such as a status, too. */
export const endingOf = (signal: string): Ending => ENDINGS[signal] ?? { word: signal, status: "failed" };
