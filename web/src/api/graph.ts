/** The graph of a run: asked for as a whole once, then for what has changed of it. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { get, inPath } from "./http";
import type { GraphAnswer, GraphDocument, GraphEdge } from "./types";

/** Around these tasks, or around the live ones. */
export const graphQuery = (run: string, edges: number, ids: readonly string[] = []) =>
  queryOptions({
    queryKey: ["run", run, "graph", edges, ids],
    queryFn: async ({ client, queryKey, signal }): Promise<GraphDocument> => {
      const known = client.getQueryData<GraphDocument>(queryKey);
      const asked = new URLSearchParams({ n: String(edges) });
      if (ids.length > 0) asked.set("ids", ids.join(","));
      if (known !== undefined) asked.set("since", known.version);
      return merged(known, await get<GraphAnswer>(`/runs/${inPath(run)}/graph?${asked.toString()}`, signal));
    },
    placeholderData: keepPreviousData,
    structuralSharing: false, // what has not changed is the same object already
  });

/** What tells an edge from others between the same tasks. */
export const edgeKey = (edge: Pick<GraphEdge, "from" | "to" | "output" | "suicide">): string =>
  `${edge.from}>${edge.to}:${edge.output}${edge.suicide ? "!" : ""}`;

/** The graph as it is now. Objects of what is unchanged are kept, and so is their order: nothing is drawn or placed anew for them. */
export function merged(known: GraphDocument | undefined, told: GraphAnswer): GraphDocument {
  const { since, gone, ...graph } = told;
  if (since === null || known === undefined) return graph;
  if (told.version === known.version) return known;
  const byId = (one: { id: string }): string => one.id;
  return {
    ...graph,
    points: known.points.join() === told.points.join() ? known.points : told.points,
    families: Object.keys(told.families).length > 0 ? { ...known.families, ...told.families } : known.families,
    tasks: changed(known.tasks, told.tasks, gone.tasks, byId),
    groups: changed(known.groups, told.groups, gone.groups, byId),
    edges: changed(known.edges, told.edges, gone.edges.map(edgeKey), edgeKey),
  };
}

function changed<T>(known: T[], told: readonly T[], gone: readonly string[], keyOf: (one: T) => string): T[] {
  if (told.length === 0 && gone.length === 0) return known;
  const found = new Map(known.map((one) => [keyOf(one), one]));
  for (const key of gone) found.delete(key);
  for (const one of told) found.set(keyOf(one), one);
  return [...found.values()];
}
