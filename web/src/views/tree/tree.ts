/** A run as a tree: points, families, tasks; made flat, as far as it is open, for drawing. */
import type { Counts, NodeFacts, Submission, TaskRow } from "../../api/types";
import { FOLD_MIN, isMapped } from "../../pages/run/folds";

export interface Branch {
  key: string;
  kind: "point" | "family";
  name: string;
  counts: Counts;
  tasks: number;
  children: (Branch | Leaf)[];
}

export interface Leaf {
  key: string;
  kind: "task";
  row: TaskRow;
}

/** One line: what it is, how deep, and whether more is below it. */
export interface Line {
  key: string;
  depth: number;
  parent: string | null;
  open: boolean | null; // null: nothing can be below
  of: Branch | Leaf | { kind: "attempt"; task: TaskRow; try: Try } | { kind: "note"; text: string };
}

/** A submission, or one of several attempts at it. */
export interface Try {
  text: string;
  status: string;
  worker: string | null;
  started_at: string | null;
  ended_at: string | null;
  exit_status: number | null;
  error: string | null;
}

export function growTree(rows: readonly TaskRow[], nodes: Readonly<Record<string, NodeFacts>>): Branch[] {
  const points = new Map<string, Branch>();
  const families = new Map<string, Branch>();
  for (const row of rows) {
    const point = branchAt(points, row.point, "point", row.point);
    const way = [point.branch];
    let above = point.branch;
    for (const family of nodes[row.name]?.branch ?? []) {
      const { branch, fresh } = branchAt(families, `${above.key}/${family}`, "family", family);
      if (fresh) above.children.push(branch);
      way.push(branch);
      above = branch;
    }
    above.children.push({ key: `task ${row.id}`, kind: "task", row });
    for (const branch of way) {
      branch.tasks += 1;
      branch.counts[row.state] = (branch.counts[row.state] ?? 0) + 1;
    }
  }
  return [...points.values()];
}

function branchAt(known: Map<string, Branch>, key: string, kind: Branch["kind"], name: string) {
  const old = known.get(key);
  if (old !== undefined) return { branch: old, fresh: false };
  const branch: Branch = { key, kind, name, counts: {}, tasks: 0, children: [] };
  known.set(key, branch);
  return { branch, fresh: true };
}

const SETTLED = ["succeeded", "ended", "not taken", "removed"];

/** Unless somebody said otherwise: points where something is going on or went wrong, and no long list of elements. */
export function isOpenByItself(item: Branch | Leaf): boolean {
  if (item.kind === "task") return false;
  if (item.kind === "family") return !isMapped(item.name) || item.tasks < FOLD_MIN;
  return Object.entries(item.counts).some(([state, count]) => count > 0 && !SETTLED.includes(state));
}

export function flatten(
  tree: readonly (Branch | Leaf)[],
  isOpen: (item: Branch | Leaf) => boolean,
  triesOf: (id: string) => readonly Try[] | null,
): Line[] {
  const lines: Line[] = [];
  const add = (item: Branch | Leaf, depth: number, parent: string | null): void => {
    const open = isOpen(item);
    if (item.kind === "task") {
      const { row } = item;
      lines.push({ key: item.key, depth, parent, open: row.submit > 0 ? open : null, of: item });
      if (open && row.submit > 0) addTries(lines, row, depth + 1, item.key, triesOf(row.id));
      return;
    }
    lines.push({ key: item.key, depth, parent, open, of: item });
    if (open) for (const child of item.children) add(child, depth + 1, item.key);
  };
  for (const one of tree) add(one, 0, null);
  return lines;
}

function addTries(lines: Line[], task: TaskRow, depth: number, parent: string, tries: readonly Try[] | null): void {
  if (tries === null) {
    lines.push({ key: `${parent} …`, depth, parent, open: null, of: { kind: "note", text: "Loading …" } });
    return;
  }
  for (const one of tries) lines.push({ key: `${parent} ${one.text}`, depth, parent, open: null, of: { kind: "attempt", task, try: one } });
}

/** The newest first; a submission that was tried once is one line. */
export function triesOf(submissions: readonly Submission[]): Try[] {
  return [...submissions].reverse().flatMap((one) => {
    if (one.attempts.length <= 1) {
      return [{ text: `#${one.submit}`, status: one.status, worker: one.worker ?? one.attempts[0]?.worker ?? null, started_at: one.started_at, ended_at: one.ended_at, exit_status: one.exit_status, error: one.error }];
    }
    return [...one.attempts].reverse().map((attempt, place) => ({
      text: `#${one.submit}, attempt ${attempt.attempt}`,
      status: place === 0 ? one.status : (attempt.ended_by ?? "running"),
      worker: attempt.worker,
      started_at: attempt.started_at ?? attempt.claimed_at,
      ended_at: attempt.ended_at,
      exit_status: attempt.exit_status,
      error: attempt.error,
    }));
  });
}

export type Step = { active: string } | { toggle: string } | null;

/** What a key means at a line, as trees behave everywhere. */
export function stepOf(key: string, lines: readonly Line[], at: string | null): Step {
  const place = Math.max(0, lines.findIndex((line) => line.key === at));
  const here = lines[place];
  if (here === undefined) return null;
  const go = (to: number): Step => ({ active: lines[Math.min(lines.length - 1, Math.max(0, to))]?.key ?? here.key });
  if (key === "ArrowDown") return go(at === null ? 0 : place + 1);
  if (key === "ArrowUp") return go(place - 1);
  if (key === "PageDown") return go(place + 15);
  if (key === "PageUp") return go(place - 15);
  if (key === "Home") return go(0);
  if (key === "End") return go(lines.length - 1);
  if (key === "ArrowRight") return here.open === false ? { toggle: here.key } : here.open ? go(place + 1) : null;
  if (key === "ArrowLeft") return here.open ? { toggle: here.key } : here.parent === null ? null : { active: here.parent };
  return null;
}
