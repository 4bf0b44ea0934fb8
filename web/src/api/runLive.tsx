/** The live run for whatever is drawn below: one store, one stream, and fresh documents. */
import { useQueryClient } from "@tanstack/react-query";
import { createContext, use, useEffect, useMemo, useSyncExternalStore, type ReactNode } from "react";
import { RunLive, type LiveState, type RowSource } from "./live";
import type { TaskRow } from "./types";

const Live = createContext<RunLive | null>(null);
const Rows = createContext<RowSource | null>(null); // what is drawn: the live run, or a moment of it
const REFRESH_MS = 400;
let current: RunLive | null = null;

/** The run that is on the screen, for what is drawn outside of its page. */
export const currentLive = (): RunLive | null => current;

export function RunLiveProvider({ run, children }: { run: string; children: ReactNode }) {
  const live = useMemo(() => new RunLive(run), [run]);
  const queries = useQueryClient();
  useEffect(() => {
    live.start();
    current = live;
    let seen = live.snapshot().batch;
    let timer = 0;
    // Documents of this run that are on the screen follow its batches, a little later.
    const unsubscribe = live.subscribe(() => {
      const { batch } = live.snapshot();
      if (batch === seen || timer !== 0) return;
      timer = window.setTimeout(() => {
        timer = 0;
        seen = live.snapshot().batch;
        void queries.invalidateQueries({ queryKey: ["run", run], refetchType: "active" });
      }, REFRESH_MS);
    });
    return () => {
      window.clearTimeout(timer);
      unsubscribe();
      current = null;
      live.stop();
    };
  }, [live, queries, run]);
  return <Live value={live}><Rows value={live}>{children}</Rows></Live>;
}

/** Whatever is drawn below shows these rows instead of the live ones. */
export function RunMoment({ rows, children }: { rows: RowSource; children: ReactNode }) {
  return <Rows value={rows}>{children}</Rows>;
}

function useRows(): RowSource {
  const rows = use(Rows);
  if (rows === null) throw new Error("useLive is for what is drawn on the page of a run");
  return rows;
}

export function useLiveStore(): RunLive {
  const live = use(Live);
  if (live === null) throw new Error("useLive is for what is drawn on the page of a run");
  return live;
}

/** The whole run; drawn again at most eight times a second. */
export function useLive(): LiveState {
  const rows = useRows();
  return useSyncExternalStore(rows.subscribe, rows.snapshot);
}

/** One task; drawn again only if it changed. */
export function useTaskRow(id: string): TaskRow | undefined {
  const rows = useRows();
  return useSyncExternalStore(rows.subscribe, () => rows.row(id));
}

/** Of rows as they were: whether the batch at hand touched this task. */
export function useTouched(id: string): boolean {
  const rows = useRows();
  return useSyncExternalStore(rows.subscribe, () => rows.snapshot().past?.touched.has(id) === true);
}
