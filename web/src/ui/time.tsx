/** Times as people read them: how long ago, how long it took; the exact time on hover. */
import { useSyncExternalStore } from "react";

let now = Date.now();
let timer = 0;
const listeners = new Set<() => void>();

/** The time, told once a second to all who ask. */
export function useNow(): number {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      timer ||= window.setInterval(() => {
        now = Date.now();
        listeners.forEach((tell) => tell());
      }, 1_000);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) {
          window.clearInterval(timer);
          timer = 0;
        }
      };
    },
    () => now,
  );
}

export function durationText(seconds: number): string {
  if (seconds <= 0) return "0 s";
  if (seconds < 0.1) return `${Math.max(1, Math.round(seconds * 1_000))} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds); // first: no minute has sixty seconds
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return two(minutes, "min", whole % 60, "s");
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return two(hours, "h", minutes % 60, "min");
  return two(Math.floor(hours / 24), "d", hours % 24, "h");
}

const two = (large: number, unit: string, small: number, of: string): string => (small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${of}`);

export function secondsBetween(from: string, to: string | number): number {
  return ((typeof to === "number" ? to : Date.parse(to)) - Date.parse(from)) / 1_000;
}

export const exactTime = (at: string): string => at.replace("T", " ").replace(/\.\d+/, "").replace("Z", " UTC");

export function Ago({ at }: { at: string | null }) {
  const here = useNow();
  if (at === null) return null;
  const seconds = secondsBetween(at, here);
  const text = seconds < 5 ? "just now" : `${durationText(Math.round(seconds)).replace(".0", "").split(" ").slice(0, 2).join(" ")} ago`;
  return <time dateTime={at} title={exactTime(at)}>{text}</time>;
}

/** When something is to happen. */
export function Due({ at }: { at: string }) {
  const here = useNow();
  const seconds = Math.round(-secondsBetween(at, here));
  return <time dateTime={at} title={exactTime(at)}>{seconds <= 0 ? "now" : `in ${durationText(seconds).replace(".0", "")}`}</time>;
}

export function At({ at }: { at: string | null }) {
  if (at === null) return null;
  return <time dateTime={at} title={exactTime(at)}>{clockText(new Date(at), new Date())}</time>;
}

/** By the clock on the wall here; the day and the year where they are others than today's. */
export function clockText(time: Date, today: Date): string {
  const clock = time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  if (time.toDateString() === today.toDateString()) return clock;
  const year = time.getFullYear() === today.getFullYear() ? {} : { year: "numeric" as const };
  return `${time.toLocaleDateString([], { month: "short", day: "numeric", ...year })} ${clock}`;
}

/** "Europe/Berlin": where the clock on the wall hangs. */
export const timeZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** How long from one time to another, or until now. */
export function Took({ from, to }: { from: string | null; to: string | null }) {
  if (from === null) return null;
  return to === null ? <Running from={from} /> : <>{durationText(secondsBetween(from, to))}</>;
}

function Running({ from }: { from: string }) {
  const here = useNow();
  return <span className="running-time">{durationText(Math.max(0, Math.round(secondsBetween(from, here))))}</span>;
}
