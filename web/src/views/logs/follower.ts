/** One log, read from its end and followed while it grows. */
import { get, getBytes, inPath, Problem } from "../../api/http";
import type { LogLinePlace as FoundLine } from "../../api/generated/log_lines";
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
  busy: boolean; // another part is on its way
  later: boolean; // what is shown is not the end, and nothing is followed
}

/** Where a line begins, and its number. */
export interface KnownLine {
  offset: number;
  line: number;
}

/** The address of something of a log, with what names the log. */
export function logPath({ run, id, file, submit, attempt }: LogPlace, below: string, more: Record<string, string | number | null> = {}): string {
  const query = new URLSearchParams({ file, ...(id === "" ? {} : { id }) });
  for (const [name, value] of Object.entries({ submit, attempt, ...more })) {
    if (value !== null) query.set(name, String(value));
  }
  return `/runs/${inPath(run)}/log${below}?${query.toString()}`;
}

const PART_BYTES = 256 * 1024;
const BEFORE_BYTES = 32 * 1024; // shown before a line that somebody asked for
const WAIT_S = 20;
const AGAIN_MS = 2_000;
const LOG_OF_RUN_TRIES = 10;

export class LogFollower {
  readonly buffer = new LogBuffer();
  /** Somebody reads further up: lines must not go away under their eyes. */
  held = false;
  private state: LogState = { phase: "loading", problem: null, over: false, size: 0, version: 0, busy: false, later: false };
  private readonly listeners = new Set<() => void>();
  private abort = new AbortController();
  private first = 0; // the first byte that is kept: of the log of a run, the oldest part may be gone
  private epoch = 0; // another part is shown than when something was asked for

  /** With the number of a line, that is where it begins to read; else at the end. */
  constructor(private readonly place: LogPlace, private readonly line: number | null = null) {}

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
    return this.buffer.start > this.first;
  }

  /** Shows the part around a byte, or without one the end; `known` is the line that begins there. */
  async show(offset: number | null, known: KnownLine | null = null): Promise<void> {
    this.epoch += 1;
    const { epoch } = this;
    this.put({ busy: true });
    try {
      const span: Record<string, number> = offset === null ? {} : { offset: Math.max(0, offset - BEFORE_BYTES) };
      const part = await this.read({ ...span, limit: PART_BYTES }, this.abort.signal);
      if (epoch !== this.epoch) return;
      if (part.offset > (span.offset ?? Infinity)) this.first = part.offset;
      this.begun(part, known);
    } catch (error) {
      if (!this.abort.signal.aborted && epoch === this.epoch) this.put({ busy: false, problem: problemOf(error) });
    }
  }

  /** Shows the part in which a line is, by its number, and says where that is; behind the end it is the last one. */
  async showLine(line: number): Promise<KnownLine | null> {
    try {
      const found = await this.find({ line }, this.abort.signal);
      if (!this.buffer.has(found.offset)) await this.show(found.offset, found);
      return found;
    } catch (error) {
      if (!this.abort.signal.aborted) this.put({ problem: problemOf(error) });
      return null;
    }
  }

  /** What stands behind the last line that is shown, if it is not the end. */
  async later(): Promise<void> {
    const { buffer, epoch } = this;
    if (this.state.busy || !this.state.later) return;
    this.put({ busy: true });
    try {
      const part = await this.read({ offset: buffer.end, limit: PART_BYTES }, this.abort.signal);
      if (epoch !== this.epoch) return;
      buffer.append(part.bytes);
      this.changed({ busy: false, size: part.facts.size, later: part.bytes.length > 0 && buffer.end < part.facts.size });
    } catch (error) {
      if (!this.abort.signal.aborted) this.put({ busy: false, problem: problemOf(error) });
    }
  }

  /** What stands before the first line that is shown. */
  async earlier(): Promise<void> {
    const { buffer } = this;
    if (this.state.busy || !this.hasEarlier) return;
    this.put({ busy: true });
    try {
      const offset = Math.max(0, buffer.start - PART_BYTES);
      const part = await this.read({ offset, limit: buffer.start - offset }, this.abort.signal);
      if (part.offset > offset) this.first = part.offset;
      buffer.prepend(part.bytes.subarray(0, Math.max(0, buffer.start - part.offset)), Math.min(part.offset, buffer.start));
      this.changed({ busy: false });
    } catch (error) {
      if (!this.abort.signal.aborted) this.put({ busy: false, problem: problemOf(error) });
    }
  }

  private async follow(signal: AbortSignal): Promise<void> {
    let begun = false;
    let waits = this.place.id === "" ? LOG_OF_RUN_TRIES : 0; // a run that has just begun has none yet
    while (!signal.aborted) {
      try {
        await this.untilWanted(signal);
        begun = begun ? await this.goOn(signal) : await this.begin(signal);
        if (this.state.over && !this.state.later) return;
      } catch (error) {
        if (isOver(signal)) return;
        const problem = problemOf(error);
        const passes = problem.passes || (problem.status === 404 && !begun && waits-- > 0);
        this.put({ problem, phase: passes && begun ? "reading" : passes ? "loading" : "failed" });
        if (!passes) return;
        await pause(AGAIN_MS, signal);
      }
    }
  }

  private async begin(signal: AbortSignal): Promise<boolean> {
    if (this.line !== null) {
      const found = await this.find({ line: this.line }, signal);
      await this.show(found.offset, found);
      if (this.state.phase !== "loading") return true;
    }
    const part = await this.read({ limit: PART_BYTES }, signal);
    this.begun(part, null);
    return true;
  }

  private begun(part: { bytes: Uint8Array; offset: number; facts: { size: number; over: boolean } }, known: KnownLine | null): void {
    const { buffer } = this;
    buffer.begin(part.bytes, part.offset);
    if (known !== null) buffer.know(known.offset, known.line);
    else if (buffer.start === 0) buffer.number = 1;
    else void this.count();
    const later = buffer.end < part.facts.size;
    this.changed({ size: part.facts.size, over: this.state.over || part.facts.over, phase: "reading", problem: null, busy: false, later });
  }

  /** Asks which number the first line has: lines are shown before it is known. */
  private async count(): Promise<void> {
    const { epoch, buffer, abort } = this;
    try {
      const found = await this.find({ offset: buffer.start }, abort.signal);
      if (epoch !== this.epoch) return;
      if (!buffer.know(Math.max(found.offset, buffer.start), found.line)) await this.count();
      else this.changed({});
    } catch {
      // Numbers are a help, no more: what is wrong with the log is told by its lines.
    }
  }

  /** Where a line begins, or in which line a byte is: the server counts, step by step. */
  private async find(wanted: { line: number } | { offset: number }, signal: AbortSignal): Promise<KnownLine> {
    for (let cursor = ""; ;) {
      const found = await get<FoundLine>(logPath(this.place, "/line", { ...wanted, ...(cursor === "" ? {} : { cursor }) }), signal);
      if (found.done) return found;
      cursor = found.cursor;
    }
  }

  /** False if the file is not the one it was, and must be read anew. */
  private async goOn(signal: AbortSignal): Promise<boolean> {
    const { buffer, epoch } = this;
    const part = await this.read({ offset: buffer.end, limit: PART_BYTES, wait_s: WAIT_S }, signal);
    if (epoch !== this.epoch) return true;
    if (part.facts.size < buffer.end && part.found) return false;
    if (part.bytes.length > 0) buffer.append(part.bytes);
    this.changed({ ...part.facts, problem: null });
    return true;
  }

  private async read(span: Record<string, number>, signal: AbortSignal) {
    const { bytes, headers } = await getBytes(logPath(this.place, "", span), signal);
    const facts = { size: Number(headers.get("x-log-size") ?? 0), over: headers.get("x-log-over") === "true" };
    return { bytes, facts, offset: Number(headers.get("x-log-offset") ?? 0), found: headers.get("x-log-found") === "true" };
  }

  /** A window that nobody sees asks for nothing; one that is full and read waits. */
  private async untilWanted(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (document.hidden || this.state.later || (this.held && this.buffer.isFull))) await pause(500, signal);
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
