/** Server-sent events out of text that comes in pieces. */

export interface ServerEvent {
  event: string;
  data: string;
  id: string | null;
}

export interface Parsed {
  events: ServerEvent[];
  retryMs: number | null;
}

export class EventParser {
  private rest = "";
  private event = "";
  private data: string[] = [];
  private id: string | null = null;

  /** What is complete with this piece. */
  feed(piece: string): Parsed {
    const parsed: Parsed = { events: [], retryMs: null };
    const lines = (this.rest + piece).split(/\r\n|\n|\r/);
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.line(line, parsed);
    return parsed;
  }

  private line(line: string, parsed: Parsed): void {
    if (line === "") {
      if (this.data.length > 0 || this.event !== "") {
        parsed.events.push({ event: this.event || "message", data: this.data.join("\n"), id: this.id });
      }
      this.event = "";
      this.data = [];
      return;
    }
    if (line.startsWith(":")) return; // a sign of life
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.event = value;
    else if (field === "data") this.data.push(value);
    else if (field === "id") this.id = value;
    else if (field === "retry" && /^\d+$/.test(value)) parsed.retryMs = Number(value);
  }
}
