/** Limits of a queue as texts in a form, and back. */
import type { QueueFacts, QueueLimit } from "../../api/storeTypes";

export interface LimitTexts {
  key: string;
  most: string;
  rate: string;
  seconds: string;
}

export const USUAL_LEASE_SECONDS = 10;
export const NO_LIMIT: LimitTexts = { key: "", most: "", rate: "", seconds: "1" };

const textsOf = (limit: QueueLimit): LimitTexts => ({
  key: limit.key, most: limit.concurrency_max === null ? "" : String(limit.concurrency_max), rate: limit.rate_max === null ? "" : String(limit.rate_max), seconds: String(limit.rate_seconds),
});

/** That of the queue as a whole comes first, and is always there. */
export function limitTexts(queue: Pick<QueueFacts, "limits">): LimitTexts[] {
  const whole = queue.limits.find((limit) => limit.key === "");
  return [whole ? textsOf(whole) : NO_LIMIT, ...queue.limits.filter((limit) => limit.key !== "").map(textsOf)];
}

const COUNT = /^\d{1,9}$/;

/** What is wrong with each field of a row; empty if nothing is. */
export function wrongIn(row: LimitTexts, isWhole: boolean): Partial<Record<keyof LimitTexts, string>> {
  const wrong: Partial<Record<keyof LimitTexts, string>> = {};
  const isWritten = row.most !== "" || row.rate !== "";
  if (!isWhole && isWritten && row.key.trim() === "") wrong.key = "Give the limit key, or * for every key that is not listed.";
  if (row.most !== "" && !COUNT.test(row.most)) wrong.most = "Give a whole number, 0 or more; empty: no limit.";
  if (row.rate !== "" && !(COUNT.test(row.rate) && Number(row.rate) > 0)) wrong.rate = "Give a whole number, 1 or more; empty: no limit.";
  if (row.rate !== "" && !(Number(row.seconds) > 0)) wrong.seconds = "Give a number of seconds greater than 0.";
  return wrong;
}

/** Rows that say nothing are left out. */
export function limitsOf(rows: readonly LimitTexts[]): QueueLimit[] {
  return rows.filter((row) => row.most !== "" || row.rate !== "").map((row) => ({
    key: row.key.trim(), concurrency_max: row.most === "" ? null : Number(row.most), rate_max: row.rate === "" ? null : Number(row.rate), rate_seconds: row.rate === "" ? 1 : Number(row.seconds),
  }));
}
