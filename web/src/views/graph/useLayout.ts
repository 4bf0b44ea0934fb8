/** Where everything is drawn: asked of the worker, the last answer is shown until the next. */
import { useEffect, useRef, useState } from "react";
import type { LayoutRequest, Placed } from "./layout";
import type { Answered, Asked } from "./worker";

interface Layout {
  placed: Placed | null;
  request: LayoutRequest | null; // of which `placed` is the layout
  error: string | null;
}

export function useLayout(request: LayoutRequest | null): Layout {
  const worker = useRef<Worker | null>(null);
  const asked = useRef(new Map<number, LayoutRequest>());
  const next = useRef(0);
  const busy = useRef(false);
  const waiting = useRef<LayoutRequest | null>(null);
  const [layout, setLayout] = useState<Layout>({ placed: null, request: null, error: null });

  useEffect(() => {
    const made = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    const requests = asked.current;
    made.onmessage = ({ data }: MessageEvent<Answered>) => {
      const of = requests.get(data.number) ?? null;
      requests.delete(data.number);
      busy.current = false;
      if ("error" in data) setLayout((old) => ({ ...old, error: data.error }));
      else setLayout({ placed: data.placed, request: of, error: null });
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
  function send(wanted: LayoutRequest): void {
    if (busy.current) {
      waiting.current = wanted;
      return;
    }
    busy.current = true;
    const number = next.current++;
    asked.current.set(number, wanted);
    worker.current?.postMessage({ number, request: wanted } satisfies Asked);
  }

  useEffect(() => {
    if (request !== null) send(request);
  }, [request]);
  return layout;
}
