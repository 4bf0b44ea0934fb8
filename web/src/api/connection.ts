/**
 * Whether what this page shows is what is so now, for whoever wants to show it.
 *
 * Two things tell: the event stream, on pages that have one, and every request, since a page that only asks now and then shows the
 * states of a dead server just as well. After a request that nobody answered the server is asked for a sign of life until it gives one.
 */
import { useEffect, useSyncExternalStore } from "react";
import type { Connection } from "./stream";

type Known = Connection | "idle";

const HEALTH = "/healthz";
const ASK_MS = 2_000;

let stream: Known = "idle";
let isAnswered = true;
const listeners = new Set<() => void>();

function tell(change: () => void): void {
  const before = connection();
  change();
  if (connection() !== before) listeners.forEach((listener) => listener());
}

const connection = (): Known => (isAnswered ? stream : "lost");

export function setConnection(told: Known): void {
  tell(() => {
    stream = told;
    if (told === "live") isAnswered = true;
  });
}

/** Of each request: whether the server said anything at all. */
export function setAnswered(was: boolean): void {
  tell(() => { isAnswered = was; });
}

export function useConnection(): Known {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    connection,
  );
}

export const serverAnswers = (): Promise<boolean> => fetch(HEALTH, { cache: "no-store" }).then((answer) => answer.ok, () => false);

/** Calls `back` once a server that was lost answers again. */
export function useComingBack(back: () => void): void {
  const isLost = useConnection() === "lost";
  useEffect(() => {
    if (!isLost) return;
    const timer = window.setInterval(() => {
      if (isAnswered) return; // only the stream is lost, and it comes back by itself
      void serverAnswers().then((does) => {
        if (!does || isAnswered) return;
        setAnswered(true);
        back();
      });
    }, ASK_MS);
    return () => window.clearInterval(timer);
  }, [isLost]); // eslint-disable-line react-hooks/exhaustive-deps -- what is called is always the same deed
}
