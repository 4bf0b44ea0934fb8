/** Edges that are drawn as one line, a strand: those of one kind between the same two bunches or boxes. */
import { edgeKey } from "../../api/graph";
import type { EdgeState, GraphEdge } from "../../api/types";

/** What all edges of one line have in common. */
export const kindOf = (edge: GraphEdge): string => `${edge.output}${edge.suicide ? "!" : ""}${edge.alternative ? "?" : ""}`;

export function strandsOf(edges: Iterable<GraphEdge>, unitOf: ReadonlyMap<string, string>): Map<string, GraphEdge[]> {
  const found = new Map<string, GraphEdge[]>();
  for (const edge of edges) {
    const [from, to] = [unitOf.get(edge.from) ?? edge.from, unitOf.get(edge.to) ?? edge.to];
    const key = edgeKey({ ...edge, from, to }) + (edge.alternative ? "?" : "");
    const others = found.get(key);
    if (others === undefined) found.set(key, [edge]);
    else others.push(edge);
  }
  return found;
}

// What somebody must know first: that something is lost, then that something is open.
const SAYING: readonly EdgeState[] = ["lost", "open", "not taken", "true"];

export const strandState = (edges: readonly GraphEdge[]): EdgeState => SAYING.find((state) => edges.some((edge) => edge.state === state)) ?? "open";

/** What is written on a line; nothing for success, which is what everybody expects. Of several edges: how many are met, unless all or none. */
export function strandText(edges: readonly GraphEdge[]): string {
  const met = edges.filter((edge) => edge.state === "true").length;
  const byHand = edges.every((edge) => edge.by_hand) ? "by hand" : "";
  return [outputText(edges), byHand, met > 0 && met < edges.length ? metText(met, edges.length) : ""].filter(Boolean).join(" ");
}

/** The longest text that it may come to have, so that a task that ends moves nothing. */
export function roomText(edges: readonly GraphEdge[]): string {
  const sources = new Set(edges.map((edge) => edge.from)).size;
  return sources < 2 ? strandText(edges) : [outputText(edges), metText(edges.length, edges.length)].filter(Boolean).join(" ");
}

const metText = (met: number, all: number): string => `${met} of ${all} met`;

function outputText([edge]: readonly GraphEdge[]): string {
  if (edge === undefined) return "";
  return `${edge.suicide ? "! " : ""}${edge.output === "succeeded" ? "" : edge.output}`.trim();
}
