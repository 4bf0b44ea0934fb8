/** Graphviz in a thread of its own: the page stays fluent however large the graph is. */
import { Graphviz } from "@hpcc-js/wasm-graphviz";
import type { DotJson, LayoutRequest, Placed } from "./layout";
import { placedInOrder } from "./ordering";

export interface Asked {
  number: number;
  request: LayoutRequest;
}

export type Answered = { number: number; placed: Placed } | { number: number; error: string };

const loading = Graphviz.load();
// The page's side of this thread: `self` has another type where the page's own library is known.
const page = self as unknown as { onmessage: (event: MessageEvent<Asked>) => void; postMessage: (answer: Answered) => void };

page.onmessage = (event) => {
  void answer(event.data);
};

async function answer({ number, request }: Asked): Promise<void> {
  try {
    const graphviz = await loading;
    const placed = placedInOrder(request, (dot) => JSON.parse(graphviz.layout(dot, "json", "dot")) as DotJson);
    page.postMessage({ number, placed });
  } catch (error) {
    page.postMessage({ number, error: error instanceof Error ? error.message : String(error) });
  }
}
