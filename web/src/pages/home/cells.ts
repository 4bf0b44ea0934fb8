/** How a point of a run is shown in one cell: a state, a count, a short text for the point. */
import type { GridCell, GridRun } from "../../api/types";
import { TASK_STATES } from "../../ui/palette";

/** One state for all tasks of a point: what needs action first, then what goes on. */
export function cellState(cell: GridCell): string {
  const has = (...states: string[]) => states.find((state) => (cell.counts[state] ?? 0) > 0);
  if (cell.incomplete > 0) return has("failed", "submit-failed", "expired") ?? "failed";
  const open = has("running", "submitted", "preparing", "ready", "waiting");
  if (open !== undefined) return open;
  // It is over; that something was not done is seen, and does not look like an alarm.
  if (has("failed", "submit-failed", "expired", "lost") !== undefined) return "lost";
  return has("succeeded", "ended") ?? "not taken";
}

/** The number in a cell: of those that its state is about. */
export function cellCount(cell: GridCell): number {
  if (cell.incomplete > 0) return cell.incomplete;
  const state = cellState(cell);
  if (state === "lost") return ["failed", "submit-failed", "expired", "lost"].reduce((sum, one) => sum + (cell.counts[one] ?? 0), 0);
  return cell.counts[state] ?? 0;
}

/** "20261116T0600Z: 2 failed, 1 needs action". */
export function cellText(cell: GridCell, stages: boolean): string {
  const counts = TASK_STATES.filter((state) => (cell.counts[state] ?? 0) > 0).map((state) => `${cell.counts[state]} ${state}`).join(", ");
  const need = cell.incomplete === 0 ? "" : cell.incomplete === 1 ? ", 1 needs action" : `, ${cell.incomplete} need action`;
  const late = lateText(cell);
  return `${stages ? "stages" : cell.point}: ${counts}${need}${late === "" ? "" : `, ${late}`}`;
}

/** "2 late", "1 late, next due 07:45Z": what is known of deadlines; "" where there is none. */
export function lateText({ late = 0, due }: Pick<GridCell, "late" | "due">): string {
  const next = due === undefined ? "" : `due ${dueTime(due)}`;
  return late === 0 ? next : next === "" ? `${late} late` : `${late} late, next ${next}`;
}

/** The time alone if it is of today. */
const dueTime = (due: string): string => {
  const [day = "", time = ""] = due.split("T");
  return `${day === new Date().toISOString().slice(0, 10) ? "" : `${day} `}${time.slice(0, 5)}Z`;
};

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const TIME = /^([+-]?\d{4,})-?(\d{2})-?(\d{2})T(\d{2}):?(\d{2})?(?::?\d{2})?(Z|[+-]\d{2}(?::?\d{2})?)?$/;

export interface ShortPoint {
  heading: string; // the day; "" where there is none
  short: string; // 06Z
}

/** A point as it is read below the heading of its day, with a year that is not this one; what is no time stays as it is. */
export function shortPoint(point: string, thisYear: number = new Date().getUTCFullYear()): ShortPoint {
  const [, year, month, day, hour, minute, zone] = TIME.exec(point) ?? [];
  const name = MONTHS[Number(month) - 1];
  if (year === undefined || name === undefined) return { heading: "", short: point };
  const rest = minute === undefined || minute === "00" ? hour : `${hour}:${minute}`;
  return { heading: Number(year) === thisYear ? `${Number(day)} ${name}` : `${Number(day)} ${name} ${year}`, short: `${rest}${zone ?? ""}` };
}

/** Headings of a row: each day above its first point. */
export const headings = (cells: readonly GridCell[]): string[] =>
  cells.map((cell, place) => {
    const { heading } = shortPoint(cell.point);
    const before = place === 0 ? "" : shortPoint(cells[place - 1]?.point ?? "").heading;
    return heading === before ? "" : heading;
  });

/** What a click on a cell asks of the run's page: this point and no other; 1 is not 10. */
export const pointFilter = (point: string): string => (TIME.test(point) ? point : `=${point}`);

/** Whether an operator should look at a run now. */
export const needsAction = (run: GridRun): boolean => run.status === "stalled" || run.status === "error" || run.cause !== null;

/** Whose workflows these are: the first part of names that have several, as tokens and rights are given for TEAM/*. */
export const teamsOf = (runs: readonly Pick<GridRun, "workflow">[]): string[] =>
  [...new Set(runs.flatMap(({ workflow }) => (workflow.includes("/") ? [workflow.slice(0, workflow.indexOf("/"))] : [])))].sort();
