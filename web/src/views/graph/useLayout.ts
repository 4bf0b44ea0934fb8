/** Where everything is drawn: asked of the worker, the last answer is shown until the next. */
import { useEffect, useRef, useState } from "react";
import type { Drawing } from "./drawing";
import type { Placed } from "./layout";
import type { Answered, Asked } from "./worker";

interface Layout {
  placed: Placed | null;
  drawing: Drawing | null; // of which `placed` is the layout
  error: string | null;
}

export function useLayout(wanted: Drawing): Layout {
  const worker = useRef<Worker | null>(null);
  const asked = useRef(new Map<number, Drawing>());
  const next = useRef(0);
  const busy = useRef(false);
  const waiting = useRef<Drawing | null>(null);
  const [layout, setLayout] = useState<Layout>({ placed: null, drawing: null, error: null });

  useEffect(() => {
    const made = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    const drawings = asked.current;
    made.onmessage = ({ data }: MessageEvent<Answered>) => {
      const drawing = drawings.get(data.number) ?? null;
      drawings.delete(data.number);
      busy.current = false;
      if ("error" in data) setLayout((old) => ({ ...old, error: data.error }));
      else setLayout({ placed: data.placed, drawing, error: null });
      const then = waiting.current;
      waiting.current = null;
      if (then !== null) send(then);
    };
    made.onerror = (event) => setLayout((old) => ({ ...old, error: event.message || "Graphviz could not be started" }));
    worker.current = made;
    return () => {
      made.terminate();
      worker.current = null;
      busy.current = false;
    };
  }, []);

  /** One at a time; of several that wait, only the newest matters. */
  function send(drawing: Drawing): void {
    if (busy.current) {
      waiting.current = drawing;
      return;
    }
    busy.current = true;
    const number = next.current++;
    asked.current.set(number, drawing);
    worker.current?.postMessage({ number, request: drawing.request } satisfies Asked);
  }

  useEffect(() => {
    send(wanted);
  }, [wanted]);
  return layout;
}
