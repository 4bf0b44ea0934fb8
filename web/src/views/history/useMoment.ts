/**
 * Which moment is shown: by the address, while the slider is dragged by the hand, and while it plays by the clock.
 *
 * The address follows when the hand rests, or it would be rewritten a hundred times a second. One question is
 * under way at a time, so that each is answered, however fast the slider moves.
 */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { pastQuery } from "../../api/past";
import { useLive } from "../../api/runLive";
import { useRunPage, useViewOption } from "../../pages/run/useRunPage";

const REST_MS = 350; // the hand rests
const ASK_MS = 25;

/** Batches per second, as so many at a time. */
export const PACES = { 2: [500, 1], 10: [200, 2], 50: [200, 10], 500: [200, 100] } as const;
export type Pace = keyof typeof PACES;

/** The batch that an address means; a number that is none means the beginning. */
export function batchOf(wanted: string, now: number): number {
  return wanted === "" ? now : Math.min(now, Math.max(0, Math.floor(Number(wanted)) || 0));
}

export function useMoment() {
  const { run } = useRunPage();
  const { batch: now } = useLive();
  const [wanted, setWanted] = useViewOption("history", "batch", "");
  const [held, setHeld] = useState<number | null>(null);
  const [playing, setPlaying] = useState(false);
  const [pace, setPace] = useState<Pace>(2);
  const batch = held === null ? batchOf(wanted, now) : Math.min(held, now);
  const [asked, setAsked] = useState(batch);
  const found = useQuery(pastQuery(run, asked));
  const settled = asked === batch && !found.isFetching;

  const go = (to: number) => {
    setPlaying(false);
    setHeld(null);
    setWanted(to >= now ? "" : String(Math.max(0, to)));
  };
  useEffect(() => {
    if (asked === batch || found.isFetching) return;
    const timer = window.setTimeout(() => setAsked(batch), ASK_MS);
    return () => window.clearTimeout(timer);
  }, [asked, batch, found.isFetching]);
  useEffect(() => {
    if (held === null || playing) return;
    const timer = window.setTimeout(() => go(held), REST_MS);
    return () => window.clearTimeout(timer);
  }, [held, playing]); // eslint-disable-line react-hooks/exhaustive-deps -- only a move of the hand begins the wait
  useEffect(() => {
    if (!playing || !settled) return;
    const [everyMs, step] = PACES[pace];
    const timer = window.setTimeout(() => (batch + step >= now ? go(now) : setHeld(batch + step)), everyMs);
    return () => window.clearTimeout(timer);
  }, [playing, settled, batch, now, pace]); // eslint-disable-line react-hooks/exhaustive-deps -- `go` is made anew each time

  /** From the beginning, where there is nothing behind the moment. */
  const play = () => {
    setHeld(playing ? batch : batch >= now ? 0 : batch);
    setPlaying(!playing);
  };
  return { run, now, batch, follows: wanted === "" && held === null, past: found.data, error: found.error, refetch: found.refetch, stale: !settled, go, hold: setHeld, playing, play, pace, setPace };
}
