/** Tasks by points: a line for each name and family, a column for each point. */
import { comparePoints } from "../../api/points";
import type { Counts, TaskRow } from "../../api/types";
import { FOLD_MIN, foldState } from "../../pages/run/folds";
import { needsAction } from "../../pages/run/trouble";

type Row = Pick<TaskRow, "id" | "name" | "point" | "state" | "remarks" | "in_pool">;

/** What stands at one point: a task, or all of a family. */
export interface Square {
  state: string;
  /** null: a family. */
  id: string | null;
  counts: Counts;
  alarm: boolean;
}

export interface GridLine {
  kind: "family" | "task";
  name: string;
  /** Of a family: how many names it has, and whether they are shown. */
  members: number;
  open: boolean;
  /** Below an open family. */
  within: boolean;
  squares: ReadonlyMap<string, Square>;
}

export interface TaskGrid {
  points: string[];
  lines: GridLine[];
}

const ROOT = "root";
const familyOf = (families: readonly string[]): string | null => families.find((one) => one !== ROOT) ?? null;

/** A family of many is closed, one of few open, unless somebody `toggled` it. */
export const isOpen = (members: number, toggled: boolean): boolean => (members < FOLD_MIN) !== toggled;

interface Family {
  name: string | null;
  tasks: Map<string, Map<string, Row>>; // by name and point
}

export function taskGrid(rows: readonly Row[], familiesOf: (name: string) => readonly string[], isToggled: (family: string) => boolean): TaskGrid {
  const points = new Set<string>();
  const families = new Map<string, Family>();
  for (const row of rows) {
    points.add(row.point);
    const name = familyOf(familiesOf(row.name));
    const key = name === null ? ` ${row.name}` : name; // one that is in none stands by itself
    const family = families.get(key) ?? { name, tasks: new Map<string, Map<string, Row>>() };
    families.set(key, family);
    const there = family.tasks.get(row.name) ?? new Map<string, Row>();
    there.set(row.point, row);
    family.tasks.set(row.name, there);
  }
  return { points: [...points].sort(comparePoints), lines: [...families.values()].flatMap((family) => linesOf(family, isToggled)) };
}

function linesOf({ name, tasks }: Family, isToggled: (family: string) => boolean): GridLine[] {
  const below = () => [...tasks].map(([task, there]): GridLine => ({ kind: "task", name: task, members: 0, open: false, within: name !== null, squares: new Map([...there].map(([point, row]) => [point, squareOf(row)])) }));
  if (name === null) return below();
  const open = isOpen(tasks.size, isToggled(name));
  return [{ kind: "family", name, members: tasks.size, open, within: false, squares: familySquares(tasks) }, ...(open ? below() : [])];
}

const squareOf = (row: Row): Square => ({ state: row.state, id: row.id, counts: { [row.state]: 1 }, alarm: needsAction(row) });

function familySquares(tasks: Family["tasks"]): Map<string, Square> {
  const found = new Map<string, { counts: Counts; alarm: boolean }>();
  for (const there of tasks.values()) {
    for (const [point, row] of there) {
      const square = found.get(point) ?? { counts: {}, alarm: false };
      square.counts[row.state] = (square.counts[row.state] ?? 0) + 1;
      square.alarm ||= needsAction(row);
      found.set(point, square);
    }
  }
  return new Map([...found].map(([point, { counts, alarm }]) => [point, { state: foldState({ counts }), id: null, counts, alarm }]));
}

/** "20261116T0000Z/model: failed", of a family "20261116T0000Z/ENSEMBLE: 1 failed, 11 succeeded". */
export function squareText(line: GridLine, point: string, square: Square | undefined): string {
  const said = square === undefined ? "no task" : line.kind === "task" ? square.state : Object.entries(square.counts).map(([state, count]) => `${count} ${state}`).join(", ");
  return `${point}/${line.name}: ${said}`;
}

export interface Place {
  line: number;
  column: number;
}

/** Where a key leads to; null: it is not for the grid. */
export function placeAfter(key: string, ctrl: boolean, { line, column }: Place, lines: number, columns: number, page: number): Place | null {
  const within = (to: Place): Place => ({ line: Math.max(0, Math.min(lines - 1, to.line)), column: Math.max(0, Math.min(columns - 1, to.column)) });
  switch (key) {
    case "ArrowDown": return within({ line: line + 1, column });
    case "ArrowUp": return within({ line: line - 1, column });
    case "ArrowRight": return within({ line, column: column + 1 });
    case "ArrowLeft": return within({ line, column: column - 1 });
    case "PageDown": return within({ line: line + page, column });
    case "PageUp": return within({ line: line - page, column });
    case "Home": return within({ line: ctrl ? 0 : line, column: 0 });
    case "End": return within({ line: ctrl ? lines - 1 : line, column: columns - 1 });
    default: return null;
  }
}
