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

export interface PointLabel {
  heading: string; // above its cell, for this one and those after it; "" where it says nothing new
  short: string; // below its cell
  letters: number; // for which its cell needs room
}

/**
 * Points of a row as they are read, in the largest unit that still tells them apart: "06Z" below "16 Nov", "16" below "Nov", "Nov"
 * below "2026"; a year that is not this one is said. What is no time stays as it is.
 */
export function pointLabels(points: readonly string[], thisYear: number = new Date().getUTCFullYear()): PointLabel[] {
  const times = points.map(readTime);
  const same = (part: keyof Time) => points.length > 1 && times.every((one) => one?.[part] === times[0]?.[part]);
  const label = same("time") ? (same("day") ? (same("month") ? ofYear : ofMonth) : ofDay) : ofTime;
  const said = times.map((one, place) => (times.includes(null) || one === null ? ["", points[place] ?? ""] as const : label(one, one.year === `${thisYear}` ? "" : ` ${one.year}`)));
  const starts = said.flatMap(([heading], place) => (heading !== said[place - 1]?.[0] ? [place] : []));
  const short = Math.max(...said.map(([, text]) => text.length));
  return said.map(([heading, text], place) => {
    const start = starts.findLast((one) => one <= place) ?? 0;
    const end = starts.find((one) => one > place) ?? said.length;
    return { heading: start === place ? heading : "", short: text, letters: Math.max(short, Math.ceil((heading.length + 1) / (end - start))) };
  });
}

interface Time { year: string; month: string; day: string; time: string }

function readTime(point: string): Time | null {
  const [, year, number, day, hour, minute, zone] = TIME.exec(point) ?? [];
  const month = MONTHS[Number(number) - 1];
  if (year === undefined || month === undefined) return null;
  return { year, month, day: `${Number(day)}`, time: `${minute === undefined || minute === "00" ? hour : `${hour}:${minute}`}${zone ?? ""}` };
}

/** A heading, and what stands below it; `inYear`: the year, where it is to be said. */
type Label = (one: Time, inYear: string) => readonly [string, string];
const ofTime: Label = ({ month, day, time }, inYear) => [`${day} ${month}${inYear}`, time];
const ofDay: Label = ({ month, day }, inYear) => [month + inYear, day];
const ofMonth: Label = ({ year, month }) => [year, month];
const ofYear: Label = ({ year }) => ["", year];

/** What a click on a cell asks of the run's page: this point and no other; 1 is not 10. */
export const pointFilter = (point: string): string => (TIME.test(point) ? point : `=${point}`);

/** Whether an operator should look at a run now. */
export const needsAction = (run: GridRun): boolean => run.status === "stalled" || run.status === "error" || run.cause !== null;

/** Whose workflows these are: the first part of names that have several, as tokens and rights are given for TEAM/*. */
export const teamsOf = (runs: readonly Pick<GridRun, "workflow">[]): string[] =>
  [...new Set(runs.flatMap(({ workflow }) => (workflow.includes("/") ? [workflow.slice(0, workflow.indexOf("/"))] : [])))].sort();
