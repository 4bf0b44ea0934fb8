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
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

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

export function At({ at }: { at: string | null }) {
  if (at === null) return null;
  const time = new Date(at);
  const today = time.toDateString() === new Date().toDateString();
  const clock = time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
  const day = time.toLocaleDateString([], { month: "short", day: "numeric" });
  return <time dateTime={at} title={exactTime(at)}>{today ? clock : `${day} ${clock}`}</time>;
}

/** How long from one time to another, or until now. */
export function Took({ from, to }: { from: string | null; to: string | null }) {
  if (from === null) return null;
  return to === null ? <Running from={from} /> : <>{durationText(secondsBetween(from, to))}</>;
}

function Running({ from }: { from: string }) {
  const here = useNow();
  return <span className="running-time">{durationText(Math.max(0, Math.round(secondsBetween(from, here))))}</span>;
}
