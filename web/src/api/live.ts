/**
 * One run as it is now: rows read once, kept up to date by events.
 *
 * Rows are immutable and replaced when they change, so whoever watches one row is told of that
 * row alone. Watchers of everything are told at most every FLUSH_MS, however fast events come.
 */
import { get, inPath, Problem } from "./http";
import { comparePoints } from "./points";
import { setConnection } from "./connection";
import type { ServerEvent } from "./sse";
import { EventStream } from "./stream";
import type { NodeFacts, RunEvent, RunFacts, TaskEvent, TaskRow, TaskRows, TaskWords } from "./types";

const FLUSH_MS = 120;
const RELOAD_MS = 700;

export interface LiveState {
  phase: "loading" | "ready" | "failed" | "deleted";
  problem: Problem | null;
  run: RunFacts | null;
  /** It is a run of stages, which people know by their names alone. */
  stages: boolean;
  batch: number;
  rows: readonly TaskRow[];
  nodes: Readonly<Record<string, NodeFacts>>;
  points: readonly string[];
  pointsLeftOut: number;
  /** Of rows as they were: behind which batch, and what it touched. Null: as they are. */
  past: { batch: number; touched: ReadonlySet<string> } | null;
}

/** Rows of a run, live or of an earlier moment. */
export interface RowSource {
  readonly subscribe: (listener: () => void) => () => void;
  readonly snapshot: () => LiveState;
  readonly row: (id: string) => TaskRow | undefined;
}

const EMPTY: LiveState = {
  phase: "loading",
  problem: null,
  run: null,
  stages: false,
  batch: 0,
  rows: [],
  nodes: {},
  points: [],
  pointsLeftOut: 0,
  past: null,
};

export class RunLive implements RowSource {
  private state: LiveState = EMPTY;
  private unordered = false;
  private byId = new Map<string, TaskRow>();
  private stream: EventStream | null = null;
  private readonly listeners = new Set<() => void>();
  private flushTimer = 0;
  private reloadTimer = 0;
  private stopped = false;

  constructor(readonly name: string) {}

  // Bound, for useSyncExternalStore.
  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  readonly snapshot = (): LiveState => this.state;
  readonly row = (id: string): TaskRow | undefined => this.byId.get(id);

  start(): void {
    this.stopped = false;
    void this.load();
  }

  stop(): void {
    this.stopped = true;
    this.stream?.stop();
    this.stream = null;
    window.clearTimeout(this.flushTimer);
    window.clearTimeout(this.reloadTimer);
    setConnection("idle");
  }

  /** Everything anew, then what happens behind it. */
  async load(): Promise<void> {
    try {
      const seen = await get<TaskRows>(`/runs/${inPath(this.name)}/tasks`);
      if (this.stopped) return;
      this.take(seen);
      this.follow(seen.cursor);
    } catch (error) {
      if (this.stopped) return;
      const problem = error instanceof Problem ? error : new Problem(0, "bug", String(error));
      if (problem.status === 404 && this.state.phase === "ready") {
        this.end();
        return;
      }
      if (problem.passes) this.reload();
      const phase = this.state.phase === "ready" && problem.passes ? "ready" : "failed";
      this.put({ ...this.state, phase, problem });
    }
  }

  /** What an event of the stream changes; public so that tests may tell it. */
  hear(event: ServerEvent): void {
    if (event.event === "resync") this.reload();
    else if (event.event === "gone") this.end();
    else if (event.event === "run") this.hearRun(JSON.parse(event.data) as RunEvent);
    else if (event.event === "task") this.hearTask(JSON.parse(event.data) as TaskEvent);
  }

  take(seen: TaskRows): void {
    this.byId = new Map(seen.tasks.map((row) => [row.id, row]));
    this.put({
      phase: "ready",
      problem: null,
      run: seen.run,
      stages: seen.stages === true,
      batch: seen.batch,
      rows: seen.tasks,
      nodes: seen.nodes,
      points: seen.points,
      pointsLeftOut: seen.points_left_out,
      past: null,
    });
  }

  /** It was deleted: that is the last that will be said of it. */
  private end(): void {
    this.stop();
    this.put({ ...this.state, phase: "deleted" });
  }

  private follow(since: string): void {
    this.stream?.stop();
    this.stream = new EventStream({
      query: { run: this.name },
      since,
      onEvent: (event) => this.hear(event),
      onConnection: setConnection,
    });
    this.stream.start();
  }

  private hearRun(event: RunEvent): void {
    if (event.run !== this.name) return;
    const { run } = this.state;
    if (event.status === "deleted") {
      this.end();
      return;
    }
    if (event.batch < this.state.batch) return;
    if (event.tasks === null) this.reload();
    for (const words of event.tasks ?? []) this.setWords(words);
    const facts = { status: event.status, reason: event.reason, updated_at: event.at };
    this.state = { ...this.state, batch: event.batch, run: run && { ...run, ...facts } };
    this.flushSoon();
  }

  private setWords(words: TaskWords): void {
    const old = this.byId.get(words.id);
    // It left the pool as if it had never been there.
    if (words.state === "future" && !words.in_pool && !old?.submit) {
      this.byId.delete(words.id);
      return;
    }
    if (old === undefined) {
      const times = { queued_at: null, started_at: null, ended_at: null };
      this.byId.set(words.id, { ...words, ...times, exit_status: null, worker: null });
      this.unordered = true;
      if (!(words.name in this.state.nodes)) this.reload();
    } else {
      this.byId.set(words.id, { ...old, ...words });
    }
  }

  /** Times and workers come with the steps of a submission. */
  private hearTask(event: TaskEvent): void {
    if (event.run !== this.name || event.point === null || event.name === null) return;
    const id = `${event.point}/${event.name}`;
    const old = this.byId.get(id);
    if (old === undefined || (event.submit !== null && event.submit < old.submit)) return;
    if (event.from === null) {
      this.byId.set(id, { ...old, queued_at: event.at, started_at: null, ended_at: null, exit_status: null, worker: null });
    } else if (event.to === "running" && event.signal === "claim") {
      this.byId.set(id, { ...old, started_at: event.at, ended_at: null, worker: event.worker });
    } else if (["succeeded", "failed", "cancelled"].includes(event.to)) {
      this.byId.set(id, { ...old, ended_at: event.at, exit_status: event.exit_status });
    } else return;
    this.flushSoon();
  }

  private reload(): void {
    window.clearTimeout(this.reloadTimer);
    this.reloadTimer = window.setTimeout(() => void this.load(), RELOAD_MS);
  }

  private flushSoon(): void {
    if (this.flushTimer !== 0) return;
    this.flushTimer = window.setTimeout(() => {
      this.flushTimer = 0;
      this.put({ ...this.state, ...this.derived() });
    }, FLUSH_MS);
  }

  private derived(): Pick<LiveState, "rows" | "points"> {
    const rows = [...this.byId.values()];
    const known = new Set(this.state.points);
    const fresh = [...new Set(rows.map((row) => row.point))].filter((point) => !known.has(point));
    const points = fresh.length ? [...this.state.points, ...fresh].sort(comparePoints) : this.state.points;
    if (this.unordered) this.inOrder(rows);
    return { rows, points };
  }

  /** By point, then as the definition has them: new rows came at the end. */
  private inOrder(rows: TaskRow[]): void {
    const { nodes } = this.state;
    const rank = (row: TaskRow) => nodes[row.name]?.rank ?? 0;
    rows.sort((a, b) => comparePoints(a.point, b.point) || rank(a) - rank(b));
    this.byId = new Map(rows.map((row) => [row.id, row]));
    this.unordered = false;
  }

  private put(state: LiveState): void {
    this.state = state;
    this.listeners.forEach((listener) => listener());
  }
}
