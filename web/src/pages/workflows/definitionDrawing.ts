/** A definition's graph in the form in which graphs of runs are drawn. */
import type { DefinitionGraphDocument } from "../../api/registry";
import { stageName } from "../../api/shown";
import type { GraphDocument } from "../../api/types";

export const DRAWN_MAX = 1_500; // nobody reads more, and Graphviz takes its time

/** External triggers stand among the tasks. */
export const isTrigger = (name: string): boolean => name.startsWith("@");

/** Nothing for success, which is what everybody expects. */
export function outputText(outputs: readonly string[]): string {
  const said = [...outputs].sort();
  if (said.includes("failed") && said.includes("succeeded")) return "finished"; // whatever else may end it
  return said.length === 0 ? "succeeded" : said.join(", ");
}

const OBJECT = "object@"; // so begins what stands for a buffer object
const LIST = "list@"; // and what stands for the list of a stage with for_each

/** How people call a node of a definition of stages. */
export function stageText(name: string): string {
  if (name.startsWith(OBJECT)) return `buffer object ${decodeURIComponent(name.slice(OBJECT.length))}`;
  return name.startsWith(LIST) ? `the list of stage ${name.slice(LIST.length)}` : stageName(name);
}

export function asGraph(found: DefinitionGraphDocument): GraphDocument {
  const stages = found.kind === "sip"; // then nobody has written a point
  return {
    stages,
    run: "",
    status: "",
    batch: 0,
    version: "",
    points: found.points,
    families: Object.fromEntries(found.tasks.map(({ name, family }) => [name, family === null ? [] : [family]])),
    tasks: found.tasks.map(({ id, name, point }) => ({ id, name: stages ? stageText(name) : name, point: stages ? "" : point, state: "future", remarks: [], flows: [], submit: 0, in_pool: false, distance: 0 })),
    groups: [],
    edges: found.edges.map((edge, arrow) => ({
      from: edge.parent, to: edge.child, output: outputText(edge.outputs), state: "open", by_hand: false, suicide: edge.suicide, arrow, alternative: !edge.certain,
    })),
    cut: found.cut,
  };
}

const COLOURS = 8; // as workflows.css has them

/** Each family, and what stands for its colour; beyond eight they begin again. */
export function familyColours(families: Readonly<Record<string, readonly string[]>>): Map<string, number> {
  const names = new Set(Object.values(families).flatMap(([nearest]) => nearest ?? []));
  return new Map([...names].sort().map((name, place) => [name, place % COLOURS]));
}

/** What kind of thing a box is, which its shape says. */
export const kindOfStep = (id: string): "trigger" | "object" | "task" => {
  const name = id.slice(id.indexOf("/") + 1);
  return isTrigger(name) ? "trigger" : name.startsWith(OBJECT) || name.startsWith(LIST) ? "object" : "task";
};
