/** A task that has ended, as a new one that asks for the same. */
import { ASKED_AGAIN, type StoredTask } from "../../api/storeTypes";

export const OPEN_STATUSES: readonly string[] = ["waiting", "ready", "running", "cancelling"];
export const STATUSES: readonly string[] = [...OPEN_STATUSES, "succeeded", "failed", "cancelled"];

export const isOver = (task: Pick<StoredTask, "status">): boolean => !OPEN_STATUSES.includes(task.status);

/** The run of which it is a job, and which task of it: RUN/POINT/NAME/SUBMIT in the queue run:RUN. */
export function jobOf(task: Pick<StoredTask, "id" | "queue">): { run: string; id: string } | null {
  if (!task.queue.startsWith("run:")) return null;
  const parts = task.id.split("/");
  if (parts.length < 4 || !/^\d+$/.test(parts.at(-1) ?? "")) return null;
  return { run: parts.slice(0, -3).join("/"), id: parts.slice(-3, -1).join("/") };
}

/** Names are unique: fit, fit.2, fit.3 … */
export function nextName(name: string): string {
  const found = /^(.*)\.(\d{1,9})$/.exec(name);
  return found ? `${found[1]}.${Number(found[2]) + 1}` : `${name}.2`;
}

/** What is sent; times, needs and the id belonged to the old one alone. */
export function taskAgain(task: StoredTask, name = task.name): Record<string, unknown> {
  const { delays, ...backoff } = task.retry;
  const said: Record<string, unknown> = {
    ...Object.fromEntries(Object.entries(ASKED_AGAIN).map(([field, stored]) => [field, task[stored]])),
    name,
    environment: task.environment,
    ...(task.max_retries > 0 ? (delays ? { retry_delays: delays } : { backoff }) : {}),
    cpu: task.resources.cpu || null,
    memory: task.resources.memory_bytes || null,
    gpu: task.resources.gpu || null,
    nodes: task.resources.nodes > 1 ? task.resources.nodes : null,
    exclusive: task.resources.exclusive || null,
    buffer: task.resources.buffer_bytes || null,
    flavours: task.resources.flavours.length > 0 ? task.resources.flavours : null,
    labels: task.resources.labels.length > 0 ? task.resources.labels : null,
    // As a text nothing of it is lost on the way through a browser.
    ...(task.spec_text === undefined ? { spec: task.spec } : { spec_text: task.spec_text }),
  };
  return Object.fromEntries(Object.entries(said).filter(([, value]) => value !== null && value !== undefined));
}
