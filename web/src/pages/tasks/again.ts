/** Tasks that have ended, and those by which they were submitted again. */
import { post, postLook } from "../../api/http";
import type { Resubmitted, StoredTask } from "../../api/storeTypes";

export const OPEN_STATUSES: readonly string[] = ["waiting", "ready", "running", "cancelling"];
export const STATUSES: readonly string[] = [...OPEN_STATUSES, "succeeded", "failed", "cancelled"];
export const RESUBMIT_MAX = 10_000; // in one request

export const isOver = (task: Pick<StoredTask, "status">): boolean => !OPEN_STATUSES.includes(task.status);

/** The run of which it is a job, and which task of it: RUN/POINT/NAME/SUBMIT in the queue run:RUN. */
export function jobOf(task: Pick<StoredTask, "id" | "queue">): { run: string; id: string } | null {
  if (!task.queue.startsWith("run:")) return null;
  const parts = task.id.split("/");
  if (parts.length < 4 || !/^\d+$/.test(parts.at(-1) ?? "")) return null;
  return { run: parts.slice(0, -3).join("/"), id: parts.slice(-3, -1).join("/") };
}

/** The first task, and which one of its line this is; null for a task that was submitted once. */
export function againOf(id: string): { first: string; number: number } | null {
  const found = /^(.*)~(\d{1,6})-[0-9a-f]{12}$/s.exec(id);
  return found ? { first: found[1] ?? "", number: Number(found[2]) } : null;
}

export interface Plan {
  made: Resubmitted[];
  before: Resubmitted[];
  refused: Resubmitted[];
  /** How many were cancelled because they need one of them, and are not among them. */
  children: number;
}

export function planOf(tasks: readonly Resubmitted[]): Plan {
  return {
    made: tasks.filter((one) => one.created),
    before: tasks.filter((one) => !one.created && one.refused === null),
    refused: tasks.filter((one) => one.refused !== null),
    children: new Set(tasks.flatMap((one) => one.children)).size,
  };
}

interface Asked {
  ids: readonly string[];
  with_children: boolean;
}

export const tryAgain = async (asked: Asked, signal?: AbortSignal): Promise<Resubmitted[]> =>
  (await postLook<{ tasks: Resubmitted[] }>("/tasks/resubmit", { ...asked, dry_run: true }, signal)).tasks;

export const submitAgain = async (asked: Asked): Promise<Resubmitted[]> =>
  (await post<{ tasks: Resubmitted[] }>("/tasks/resubmit", asked)).tasks;
