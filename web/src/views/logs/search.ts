/** A search that the server does, step by step: in one whole log, or in those of all jobs of a run. */
import type { JobLogHit, JobLogHits, LogHit, LogHits } from "../../api/generated/log_lines";
import { get, Problem } from "../../api/http";

export interface SearchState<Hit> {
  hits: Hit[];
  running: boolean;
  done: boolean; // all of it is searched
  full: boolean; // as many lines as this page keeps; there may be more
  part: number | null; // of one log, how much of it is searched: 0 to 1
  files: number;
  bytes: number;
  missing: number; // attempts whose logs are not on the server
  at: string | null;
  problem: Problem | null;
}

export interface Wanted {
  text: string;
  match: "text" | "glob";
  case: boolean;
  level: string; // "": of all
}

type Step = LogHits | JobLogHits;

export const HITS_MAX = 5_000;
const STEP_HITS = 500;
const AGAIN_MS = 2_000;
const GROWN_MS = 1_000;

export const isWanted = ({ text, level }: Wanted): boolean => text !== "" || level !== "";

/** The parameters of a step; the cursor comes with each. */
export function wantedQuery(wanted: Wanted): Record<string, string> {
  return { text: wanted.text, match: wanted.match, ...(wanted.case ? { case: "true" } : {}), ...(wanted.level === "" ? {} : { level: wanted.level }), limit: String(STEP_HITS) };
}

/** Of a search that has not begun. */
export const NOTHING_YET: SearchState<never> = { hits: [], running: true, done: false, full: false, part: 0, files: 0, bytes: 0, missing: 0, at: null, problem: null };

export class StepSearch<Hit extends LogHit | JobLogHit = LogHit> {
  private state: SearchState<Hit> = NOTHING_YET;
  private readonly listeners = new Set<() => void>();
  private readonly abort = new AbortController();
  private cursor = "";
  private searched = 0;
  private size = 0;
  private timer = 0;

  /** `path` is the address of the step behind a cursor. */
  constructor(private readonly path: (cursor: Record<string, string>) => string) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  readonly snapshot = (): SearchState<Hit> => this.state;

  start(): void {
    void this.run();
  }

  stop(): void {
    window.clearTimeout(this.timer);
    this.abort.abort();
    this.put({ running: false });
  }

  /** The log has grown: what was added is searched, too. */
  grew(size: number): void {
    if (!this.state.done || this.state.full || size <= this.size || this.abort.signal.aborted) return;
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      // Its last line may have had no end then.
      this.put({ hits: this.state.hits.filter((hit) => hit.offset < this.searched), done: false, running: true });
      this.start();
    }, GROWN_MS);
  }

  private async run(): Promise<void> {
    const { signal } = this.abort;
    while (!signal.aborted && !this.state.done && !this.state.full) {
      try {
        this.took(await get<Step>(this.path(this.cursor === "" ? {} : { cursor: this.cursor }), signal));
      } catch (error) {
        if (isOver(signal)) return;
        const problem = error instanceof Problem ? error : new Problem(-1, "bug", String(error));
        this.put({ problem, running: problem.passes });
        if (!problem.passes) return;
        await new Promise((resolve) => window.setTimeout(resolve, AGAIN_MS));
      }
    }
    this.put({ running: false });
  }

  private took(step: Step): void {
    const hits = [...this.state.hits, ...(step.hits as Hit[])];
    this.cursor = step.cursor ?? "";
    const facts = { hits, done: step.done, full: hits.length >= HITS_MAX, problem: null };
    if ("searched" in step) {
      this.searched = step.searched;
      this.size = step.size;
      this.put({ ...facts, part: step.done || step.size === 0 ? 1 : step.searched / step.size });
    } else {
      const { files, bytes, missing } = this.state;
      this.put({ ...facts, part: null, files: files + step.files, bytes: bytes + step.bytes, missing: missing + step.missing, at: step.at });
    }
  }

  private put(facts: Partial<SearchState<Hit>>): void {
    this.state = { ...this.state, ...facts };
    this.listeners.forEach((listener) => listener());
  }
}

const isOver = (signal: AbortSignal): boolean => signal.aborted;
