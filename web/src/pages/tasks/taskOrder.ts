/** The columns of the tasks of queues, and how each sorts what has been loaded. */
import type { StoredTask } from "../../api/storeTypes";
import { STATUSES } from "./again";

interface Column {
  id: string;
  title: string;
  begins: "asc" | "desc";
  of: (task: StoredTask) => string | number;
}

export const COLUMNS: readonly Column[] = [
  { id: "status", title: "Status", begins: "asc", of: (task) => STATUSES.indexOf(task.status) },
  { id: "task", title: "Task", begins: "asc", of: (task) => task.name ?? task.id },
  { id: "queue", title: "Queue", begins: "asc", of: (task) => task.queue },
  { id: "attempt", title: "Attempt", begins: "desc", of: (task) => task.attempt },
  { id: "worker", title: "Worker", begins: "asc", of: (task) => task.owner ?? "" },
  { id: "changed", title: "Changed", begins: "desc", of: (task) => Date.parse(task.updated_at) },
];

/** "-attempt" is the largest first; any other text than a column leaves the newest first. Equal ones stay so. */
export function inTaskOrder(tasks: readonly StoredTask[], sort: string): readonly StoredTask[] {
  const column = COLUMNS.find(({ id }) => id === sort.replace(/^-/, ""));
  if (column === undefined) return tasks;
  const keys = new Map(tasks.map((task) => [task, column.of(task)]));
  const sign = sort.startsWith("-") ? -1 : 1;
  return [...tasks].sort((a, b) => {
    const [one, other] = [keys.get(a) ?? "", keys.get(b) ?? ""];
    if (one === other) return 0;
    if (one === "" || other === "") return one === "" ? 1 : -1; // nothing comes last, either way
    return sign * (one < other ? -1 : 1);
  });
}
