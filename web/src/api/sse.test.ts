import { expect, test } from "vitest";
import { EventParser } from "./sse";

const STREAM = 'retry: 1203\nid: a-1\nevent: start\ndata: {}\n\n: sign of life\n\nid: a-2\nevent: run\ndata: {"x":\ndata: 1}\n\n';

test("events are found whole, however the text is cut into pieces", () => {
  for (let size = 1; size < STREAM.length; size += 3) {
    const parser = new EventParser();
    const events = [];
    let retry: number | null = null;
    for (let at = 0; at < STREAM.length; at += size) {
      const parsed = parser.feed(STREAM.slice(at, at + size));
      events.push(...parsed.events);
      retry = parsed.retryMs ?? retry;
    }
    expect(events).toEqual([
      { event: "start", data: "{}", id: "a-1" },
      { event: "run", data: '{"x":\n1}', id: "a-2" },
    ]);
    expect(retry).toBe(1203);
  }
});

test("signs of life are no events", () => {
  expect(new EventParser().feed(": \n\n:\n\n").events).toEqual([]);
});
