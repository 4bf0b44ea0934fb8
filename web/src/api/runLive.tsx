/** The live run for whatever is drawn below: one store, one stream, and fresh documents. */
import { useQueryClient } from "@tanstack/react-query";
import { createContext, use, useEffect, useMemo, useSyncExternalStore, type ReactNode } from "react";
import { RunLive, type LiveState, type RowSource } from "./live";
import { useMay } from "./session";
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
    current = live;
    const unfollow = followBatches(live, {
      onRows: () => void queries.invalidateQueries({ queryKey: ["run", run], refetchType: "none" }),
      onBatch: () => queries.invalidateQueries({ queryKey: ["run", run], refetchType: "active" }),
    });
    live.start();
    return () => {
      unfollow();
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

/** Those that are shown here: as they are, or as they were. */
export function useRows(): RowSource {
  const rows = use(Rows);
  if (rows === null) throw new Error("useLive is for what is drawn on the page of a run");
  return rows;
}

interface Followed {
  /** The rows came for the first time: what is asked for from now on is as new, what is known from before may be older. */
  onRows: () => void;
  /** What is on the screen is asked for again. */
  onBatch: () => Promise<unknown>;
}

/** Documents follow the batches of a run, a little later, and never before the last answers came. */
export function followBatches(live: Pick<RunLive, "subscribe" | "snapshot">, { onRows, onBatch }: Followed): () => void {
  let seen: number | null = null;
  let timer = 0;
  let stopped = false;
  const ask = async () => {
    seen = live.snapshot().batch;
    await onBatch().finally(() => {
      timer = 0;
      look();
    });
  };
  const look = () => {
    const { phase, batch } = live.snapshot();
    if (stopped || phase !== "ready") return;
    if (seen === null) {
      seen = batch;
      onRows();
    } else if (batch !== seen && timer === 0) timer = window.setTimeout(() => void ask(), REFRESH_MS);
  };
  const unsubscribe = live.subscribe(look);
  return () => {
    stopped = true;
    window.clearTimeout(timer);
    unsubscribe();
  };
}

export function useLiveStore(): RunLive {
  const live = use(Live);
  if (live === null) throw new Error("useLive is for what is drawn on the page of a run");
  return live;
}

/** How the run has ended; null: it has not. Some commands reopen it. */
export function useEnded(): "completed" | "stopped" | null {
  const live = useLiveStore();
  return useSyncExternalStore(live.subscribe, () => {
    const status = live.snapshot().run?.status;
    return status === "completed" || status === "stopped" ? status : null;
  });
}

/** Whether who looks may give commands to this run, and it would obey some: one that was aborted stays so. */
export function useMayAct(): boolean {
  const live = useLiveStore();
  const isAborted = useSyncExternalStore(live.subscribe, () => {
    const run = live.snapshot().run;
    return run?.status === "stopped" && run.reason.startsWith("aborted by ");
  });
  return useMay("operate") && !isAborted;
}

/** The whole run; drawn again at most eight times a second. */
export function useLive(): LiveState {
  const rows = useRows();
  return useSyncExternalStore(rows.subscribe, rows.snapshot);
}

/** A part of it; drawn again only if that part is another one. */
export function useLiveOf<T>(part: (state: LiveState) => T): T {
  const rows = useRows();
  return useSyncExternalStore(rows.subscribe, () => part(rows.snapshot()));
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
