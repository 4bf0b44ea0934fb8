/**
 * The event stream of this page: one connection, which comes back by itself.
 *
 * Theory of operation. `fetch` and not `EventSource`: the latter hides why it failed, so an
 * ended session would look like a lost network. Each attempt goes on behind the last id that was
 * heard; the server tells `resync` where it cannot. A page that nobody looks at for a while lets
 * go of its connection (browsers allow six per server) and takes it up again when seen.
 */
import { address, tellSessionEnd } from "./http";
import { EventParser, type ServerEvent } from "./sse";

export type Connection = "connecting" | "live" | "lost" | "asleep";

export interface StreamOptions {
  query: Record<string, string>;
  /** Begin behind this id. */
  since?: string;
  onEvent: (event: ServerEvent) => void;
  onConnection: (connection: Connection) => void;
}

const SILENCE_MS = 25_000; // signs of life come every ten seconds
const WAIT_MIN_MS = 500;
const WAIT_MAX_MS = 15_000;
const HIDDEN_MS = 60_000;

export class EventStream {
  private last: string | null;
  private failures = 0;
  private retryMs = 1_000;
  private abort: AbortController | null = null;
  private timer = 0;
  private hiddenTimer = 0;
  private stopped = false;

  constructor(private readonly options: StreamOptions) {
    this.last = options.since ?? null;
  }

  start(): void {
    document.addEventListener("visibilitychange", this.look);
    window.addEventListener("online", this.again);
    void this.connect();
  }

  stop(): void {
    this.stopped = true;
    document.removeEventListener("visibilitychange", this.look);
    window.removeEventListener("online", this.again);
    window.clearTimeout(this.timer);
    window.clearTimeout(this.hiddenTimer);
    this.abort?.abort();
  }

  private readonly look = (): void => {
    window.clearTimeout(this.hiddenTimer);
    if (document.hidden) {
      this.hiddenTimer = window.setTimeout(() => {
        window.clearTimeout(this.timer);
        this.abort?.abort();
        this.options.onConnection("asleep");
      }, HIDDEN_MS);
    } else if (this.abort === null) this.again();
  };

  /** Now, instead of when the wait is over. */
  private readonly again = (): void => {
    if (this.abort !== null || this.stopped) return;
    window.clearTimeout(this.timer);
    void this.connect();
  };

  private async connect(): Promise<void> {
    const abort = new AbortController();
    this.abort = abort;
    this.options.onConnection("connecting");
    try {
      const ended = await this.read(abort);
      if (ended) return;
    } catch {
      this.failures += 1;
    } finally {
      if (this.abort === abort) this.abort = null;
      abort.abort();
    }
    if (this.stopped || document.hidden) {
      if (!this.stopped) this.options.onConnection("asleep");
      return;
    }
    this.options.onConnection("lost");
    this.timer = window.setTimeout(() => void this.connect(), this.wait());
  }

  private wait(): number {
    if (this.failures === 0) return this.retryMs;
    const doubled = WAIT_MIN_MS * 2 ** Math.min(this.failures, 6);
    return Math.min(doubled, WAIT_MAX_MS) * (0.5 + Math.random() / 2);
  }

  /** True if there is no use in coming again. */
  private async read(abort: AbortController): Promise<boolean> {
    const query = new URLSearchParams(this.options.query).toString();
    const answer = await fetch(address(`/events?${query}`), {
      headers: {
        Accept: "text/event-stream",
        ...(this.last === null ? {} : { "Last-Event-ID": this.last }),
      },
      signal: abort.signal,
      credentials: "same-origin",
    });
    if (answer.status === 401) {
      tellSessionEnd();
      return true;
    }
    if (answer.status === 404) {
      this.options.onEvent({ event: "gone", data: "{}", id: null });
      return true;
    }
    if (!answer.ok || answer.body === null) throw new Error(String(answer.status));
    this.failures = 0;
    this.options.onConnection("live");
    await this.pump(answer.body, abort);
    return false;
  }

  private async pump(body: ReadableStream<Uint8Array>, abort: AbortController): Promise<void> {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    const parser = new EventParser();
    for (;;) {
      const silence = window.setTimeout(() => abort.abort(), SILENCE_MS);
      const { done, value } = await reader.read().finally(() => window.clearTimeout(silence));
      if (done || this.stopped) return;
      const parsed = parser.feed(decoder.decode(value, { stream: true }));
      if (parsed.retryMs !== null) this.retryMs = parsed.retryMs;
      for (const event of parsed.events) {
        if (event.id !== null) this.last = event.id;
        this.options.onEvent(event);
      }
    }
  }
}
