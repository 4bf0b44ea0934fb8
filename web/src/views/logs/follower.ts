/** One log, read from its end and followed while it grows. */
import { getBytes, inPath, Problem } from "../../api/http";
import { LogBuffer } from "./buffer";

export interface LogPlace {
  run: string;
  id: string; // "" for the log of the run itself
  file: string;
  submit: number | null;
  attempt: number | null;
}

export interface LogState {
  phase: "loading" | "reading" | "failed";
  problem: Problem | null; // one that passes, while it lasts; or the reason why it failed
  over: boolean; // nothing more will come
  size: number;
  version: number; // of the lines
  busy: boolean; // an earlier part is on its way
}

const PART_BYTES = 256 * 1024;
const WAIT_S = 20;
const AGAIN_MS = 2_000;

export class LogFollower {
  readonly buffer = new LogBuffer();
  /** Somebody reads further up: lines must not go away under their eyes. */
  held = false;
  private state: LogState = { phase: "loading", problem: null, over: false, size: 0, version: 0, busy: false };
  private readonly listeners = new Set<() => void>();
  private abort = new AbortController();

  constructor(private readonly place: LogPlace) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  readonly snapshot = (): LogState => this.state;

  start(): void {
    this.abort = new AbortController();
    void this.follow(this.abort.signal);
  }

  stop(): void {
    this.abort.abort();
  }

  get hasEarlier(): boolean {
    return this.buffer.start > 0;
  }

  /** What stands before the first line that is shown. */
  async earlier(): Promise<void> {
    const { buffer } = this;
    if (this.state.busy || buffer.start === 0) return;
    this.put({ busy: true });
    try {
      const offset = Math.max(0, buffer.start - PART_BYTES);
      const part = await this.read({ offset, limit: buffer.start - offset }, this.abort.signal);
      buffer.prepend(part.bytes, offset);
      this.changed({ busy: false });
    } catch (error) {
      if (!this.abort.signal.aborted) this.put({ busy: false, problem: problemOf(error) });
    }
  }

  private async follow(signal: AbortSignal): Promise<void> {
    let begun = false;
    while (!signal.aborted) {
      try {
        await this.untilWanted(signal);
        begun = begun ? await this.goOn(signal) : await this.begin(signal);
        if (this.state.over) return;
      } catch (error) {
        if (isOver(signal)) return;
        const problem = problemOf(error);
        this.put({ problem, phase: problem.passes && begun ? "reading" : problem.passes ? "loading" : "failed" });
        if (!problem.passes) return;
        await pause(AGAIN_MS, signal);
      }
    }
  }

  private async begin(signal: AbortSignal): Promise<boolean> {
    const part = await this.read({ limit: PART_BYTES }, signal);
    this.buffer.begin(part.bytes, part.offset);
    this.changed({ ...part.facts, phase: "reading", problem: null });
    return true;
  }

  /** False if the file is not the one it was, and must be read anew. */
  private async goOn(signal: AbortSignal): Promise<boolean> {
    const { buffer } = this;
    const part = await this.read({ offset: buffer.end, limit: PART_BYTES, wait_s: WAIT_S }, signal);
    if (part.facts.size < buffer.end && part.found) return false;
    if (part.bytes.length > 0) buffer.append(part.bytes);
    this.changed({ ...part.facts, problem: null });
    return true;
  }

  private async read(span: Record<string, number>, signal: AbortSignal) {
    const { run, id, file, submit, attempt } = this.place;
    const query = new URLSearchParams({ file, ...(id === "" ? {} : { id }) });
    for (const [name, value] of Object.entries({ submit, attempt, ...span })) {
      if (value !== null) query.set(name, String(value));
    }
    const { bytes, headers } = await getBytes(`/runs/${inPath(run)}/log?${query.toString()}`, signal);
    const facts = { size: Number(headers.get("x-log-size") ?? 0), over: headers.get("x-log-over") === "true" };
    return { bytes, facts, offset: Number(headers.get("x-log-offset") ?? 0), found: headers.get("x-log-found") === "true" };
  }

  /** A window that nobody sees asks for nothing; one that is full and read waits. */
  private async untilWanted(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (document.hidden || (this.held && this.buffer.isFull))) await pause(500, signal);
  }

  private changed(facts: Partial<LogState>): void {
    this.put({ ...facts, version: this.state.version + 1 });
  }

  private put(facts: Partial<LogState>): void {
    this.state = { ...this.state, ...facts };
    this.listeners.forEach((listener) => listener());
  }
}

const isOver = (signal: AbortSignal): boolean => signal.aborted;

const problemOf = (error: unknown): Problem => (error instanceof Problem ? error : new Problem(-1, "bug", String(error)));

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = window.setTimeout(resolve, ms);
    signal.addEventListener("abort", () => { window.clearTimeout(timer); resolve(); }, { once: true });
  });
