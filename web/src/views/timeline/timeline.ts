/** Attempts as rows of bars, and the piece of time that is on the screen. */
import { shownId } from "../../api/shown";
import type { RunAttempt } from "../../api/types";
import { sharedPoint, shortTask } from "../../ui/points";

export interface Bar {
  key: string;
  id: string;
  attempt: RunAttempt;
  outcome: string; // a status: which colour
  queuedAt: number;
  startedAt: number | null;
  endedAt: number | null; // null: it waits or runs until now
  critical: boolean;
}

export interface TimeRow {
  key: string;
  label: string;
  short: string; // the name first, of its point what its neighbours leave to be said
  id: string | null; // the task, where the row is one task's
  outcome: string; // of the last bar
  critical: boolean;
  bars: Bar[];
}

export interface Span {
  from: number;
  to: number;
}

const OUTCOMES: Record<string, string> = { succeed: "succeeded", cancel: "cancelled", yield: "cancelled" };
const MIN_SPAN_MS = 500;

export function outcomeOf(attempt: RunAttempt): string {
  if (attempt.ended_by !== null) return OUTCOMES[attempt.ended_by] ?? "failed";
  return attempt.claimed_at === null ? "ready" : "running";
}

/** A row for each task, or for each name with its points one behind the other. */
export function timeRows(attempts: readonly RunAttempt[], critical: ReadonlySet<string>, by: "task" | "name"): TimeRow[] {
  const rows = new Map<string, TimeRow>();
  const among = sharedPoint(attempts.map((one) => one.point));
  for (const attempt of attempts) {
    const key = by === "task" ? attempt.id : attempt.name;
    const label = by === "task" ? shownId(key) : key;
    const short = by === "task" && label === key ? shortTask(key, among) : label;
    const row = rows.get(key) ?? { key, label, short, id: by === "task" ? attempt.id : null, outcome: "", critical: false, bars: [] };
    rows.set(key, row);
    const began = attempt.started_at ?? attempt.claimed_at;
    const bar: Bar = {
      key: `${attempt.task} ${attempt.attempt}`,
      id: attempt.id,
      attempt,
      outcome: outcomeOf(attempt),
      queuedAt: Date.parse(attempt.queued_at),
      startedAt: began === null ? null : Date.parse(began),
      endedAt: attempt.ended_at === null ? null : Date.parse(attempt.ended_at),
      critical: critical.has(attempt.task),
    };
    row.bars.push(bar);
    row.outcome = bar.outcome;
    row.critical ||= bar.critical;
  }
  return [...rows.values()].sort((a, b) => (a.bars[0]?.queuedAt ?? 0) - (b.bars[0]?.queuedAt ?? 0));
}

/** From the first bar to the last, with a little air; up to now while anything goes on. */
export function wholeSpan(rows: readonly TimeRow[], now: number, live: boolean): Span {
  let [from, to] = [Infinity, -Infinity];
  for (const row of rows) {
    for (const bar of row.bars) {
      from = Math.min(from, bar.queuedAt);
      to = Math.max(to, bar.endedAt ?? (live ? now : (bar.startedAt ?? bar.queuedAt)));
    }
  }
  if (from > to) return { from: now - 60_000, to: now };
  if (live) to = Math.max(to, now);
  const air = Math.max((to - from) * 0.02, MIN_SPAN_MS / 2);
  return { from: from - air, to: to + air };
}

/** Where in a span (0 left, 1 right) the middle of the bars is that can be seen; in its middle if there are none. */
export function barsAt(rows: readonly TimeRow[], span: Span, now: number): number {
  const middles = rows.flatMap((row) => row.bars).flatMap((bar) => {
    const [from, to] = [Math.max(span.from, bar.queuedAt), Math.min(span.to, bar.endedAt ?? now)];
    return from <= to ? [(from + to) / 2] : [];
  }).sort((a, b) => a - b);
  const middle = middles[Math.floor((middles.length - 1) / 2)];
  return middle === undefined ? 0.5 : (middle - span.from) / (span.to - span.from);
}

/** Zooms in or out around a place (0 left, 1 right), never beyond what there is. */
export function zoomed(span: Span, factor: number, at: number, whole: Span): Span {
  const wide = Math.max(MIN_SPAN_MS, Math.min((span.to - span.from) * factor, whole.to - whole.from));
  const still = span.from + at * (span.to - span.from);
  return within({ from: still - at * wide, to: still + (1 - at) * wide }, whole);
}

/** Moved by a part of its own width. */
export function panned(span: Span, part: number, whole: Span): Span {
  const by = part * (span.to - span.from);
  return within({ from: span.from + by, to: span.to + by }, whole);
}

function within(span: Span, whole: Span): Span {
  const wide = Math.min(span.to - span.from, whole.to - whole.from);
  const from = Math.min(Math.max(span.from, whole.from), whole.to - wide);
  return { from, to: from + wide };
}

const STEPS_S = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800];

/** Round times at least so many pixels apart, with their texts. */
export function ticksOf(span: Span, width: number, apart = 90): { at: number; text: string }[] {
  const wish = ((span.to - span.from) / 1_000) * (apart / Math.max(width, 1));
  const step = (STEPS_S.find((one) => one >= wish) ?? Math.ceil(wish / 604_800) * 604_800) * 1_000;
  const offset = new Date(span.from).getTimezoneOffset() * 60_000;
  const found = [];
  for (let at = Math.ceil((span.from - offset) / step) * step + offset; at <= span.to; at += step) found.push({ at, text: tickText(at, step) });
  return found;
}

function tickText(at: number, step: number): string {
  const time = new Date(at);
  if (step >= 86_400_000) return time.toLocaleDateString([], { month: "short", day: "numeric" });
  const clock = time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", ...(step < 60_000 ? { second: "2-digit" } : {}), hourCycle: "h23" });
  if (step < 1_000) return `${clock}.${String(time.getMilliseconds()).padStart(3, "0").slice(0, 1)}`;
  return time.getHours() === 0 && time.getMinutes() === 0 && step >= 3_600_000 ? time.toLocaleDateString([], { month: "short", day: "numeric" }) : clock;
}

/** Where something lies, in pixels; null if it is not in sight. */
export function placed(from: number, to: number, span: Span, width: number): { left: number; width: number } | null {
  if (to < span.from || from > span.to) return null;
  const scale = width / (span.to - span.from);
  const left = Math.max(-2, (from - span.from) * scale);
  return { left, width: Math.max(2, Math.min(width + 2, (to - span.from) * scale) - left) };
}
