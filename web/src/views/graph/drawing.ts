/** From the graph document to boxes, lines and frames: what is shown, and what only matters for its place. */
import { edgeKey } from "../../api/graph";
import { comparePoints } from "../../api/points";
import { isOfStages, pointsAround, shownId } from "../../api/shown";
import type { GraphDocument, GraphEdge, GraphGroup, TaskWords } from "../../api/types";
import { NOTHING_FOLDED, type Fold, type Folded } from "../../pages/run/folds";
import { strandsOf, kindOf, roomText } from "./strands";
import { gathered, type Candidate } from "./bunches";
import type { Box, LayoutRequest, Line } from "./layout";
import { NAME, NOTE } from "./legible";
import { shortPoint } from "../../ui/points";

export type Grouping = "none" | "point" | "family" | "both";

export interface Drawing {
  request: LayoutRequest;
  tasks: Map<string, TaskWords & { distance: number }>;
  groups: Map<string, GraphGroup>;
  folds: ReadonlyMap<string, Fold>;
  /** Every box of a task, a fold or a group, also within bunches. */
  boxes: Box[];
  edges: Map<string, GraphEdge>;
  /** What each line stands for. */
  strands: Map<string, GraphEdge[]>;
  points: ReadonlySet<string>;
  /** Changes only if something must be placed anew. */
  key: string;
}

export const HEIGHT = 38;
const FOLD_HEIGHT = 44; // it looks like several
const WIDTH_MAX = 320;
const AROUND = 50; // icon, gaps and borders
const LABEL_HEIGHT = 16;
const LABEL_AROUND = 10;
const REMARK = " · incomplete"; // has room, so that a remark moves nothing

/** How wide a text is, in the fonts of the boxes. */
const measure = (() => {
  const known = new Map<string, number>();
  let canvas: CanvasRenderingContext2D | null | undefined;
  return (font: string, letter: number, text: string): number => {
    const key = font + text;
    let width = known.get(key);
    if (width === undefined) {
      canvas ??= typeof OffscreenCanvas === "undefined" ? null : document.createElement("canvas").getContext("2d");
      if (canvas) canvas.font = `${font} ${getComputedStyle(document.body).fontFamily}`;
      width = canvas ? canvas.measureText(text).width : letter * text.length;
      known.set(key, width);
    }
    return width;
  };
})();

export function boxWidth(name: string, point: string): number {
  const below = point === "" ? 0 : measure(`${NOTE}px`, 6.8, point.length < 6 ? point + REMARK : point);
  return Math.min(WIDTH_MAX, Math.ceil(AROUND + Math.max(measure(`600 ${NAME}px`, 8.8, name), below)));
}

export function drawGraph(graph: GraphDocument, grouping: Grouping, direction: "LR" | "TB", isShown: (task: TaskWords) => boolean, fold: (tasks: readonly TaskWords[]) => Folded = () => NOTHING_FOLDED): Drawing {
  const fitting = graph.tasks.filter(isShown);
  const { folds, foldOf } = fold(fitting);
  const shown = fitting.filter((task) => !foldOf.has(task.id));
  const tasks = new Map(shown.map((task) => [task.id, task]));
  const groups = new Map(graph.groups.map((group) => [group.id, group]));
  const edges = new Map<string, GraphEdge>();
  for (const edge of graph.edges) {
    const there = (id: string) => tasks.has(id) || groups.has(id) || foldOf.has(id);
    if (there(edge.from) && there(edge.to)) edges.set(edgeKey(edge), edge);
  }
  const frames = (point: string, families: readonly string[]): string[] => [
    ...(grouping === "point" || grouping === "both" ? [point] : []),
    ...(grouping === "family" || grouping === "both" ? [...families].reverse().filter((one) => one !== "root") : []),
  ];
  const used = new Set([...edges.values()].flatMap((edge) => [edge.from, edge.to]));
  const ofTasks = shown.map((task): Candidate => ({
    apart: task.point,
    box: { id: task.id, width: boxWidth(isOfStages() ? shownId(task.id) : task.name, shortPoint(task.point, pointsAround())), height: HEIGHT, frames: frames(task.point, graph.families[task.name] ?? []) },
  }));
  const ofGroups = [...groups.values()].filter((group) => used.has(group.id)).map((group): Candidate => ({
    apart: null,
    box: { id: group.id, width: boxWidth(groupText(group), ""), height: 28, frames: frames(group.point, []) },
  }));
  const ofFolds = [...folds.values()].map((one): Candidate => ({
    apart: null,
    box: { id: one.id, width: graph.run === "" ? Math.min(WIDTH_MAX, 1.6 * boxWidth(one.name, "")) : WIDTH_MAX, height: FOLD_HEIGHT, frames: frames(one.point, [one.name]) }, // states that change move nothing
  }));
  // Tasks that came later are last in the document, of whatever point they are.
  const pointOf = ({ box }: Candidate): string => tasks.get(box.id)?.point ?? folds.get(box.id)?.point ?? groups.get(box.id)?.point ?? "";
  const candidates = [...ofTasks, ...ofFolds, ...ofGroups].sort((a, b) => comparePoints(pointOf(a), pointOf(b)));
  const placeOf = (id: string): string => foldOf.get(id) ?? id;
  const joints = new Map([...edges.values()].map((edge) => [`${placeOf(edge.from)}>${placeOf(edge.to)} ${kindOf(edge)}`, { from: placeOf(edge.from), to: placeOf(edge.to), kind: kindOf(edge) }]));
  const found = gathered(candidates, [...joints.values()]);
  const unitOf = new Map([...found.unitOf, ...foldOf]); // a fold is gathered with no other
  const strands = strandsOf(edges.values(), unitOf);
  const lines = [...strands].flatMap(([id, of]) => lineOf(id, of, unitOf));
  const key = JSON.stringify([direction, found.all.map((box) => [box.id, box.frames, folds.get(box.id)?.total]), lines.map((line) => [line.id, line.label?.width])]);
  return { request: { boxes: found.boxes, lines, direction }, tasks, groups, folds, boxes: found.all, edges, strands, points: new Set(graph.points), key };
}

/**
 * The graph to show while its newest form is being laid out: the one that has places, whole, with the states of now.
 *
 * Boxes of the new one at places of the old one would leave out each task that has no place yet: of a busy run the picture would
 * always lack some parents.
 */
export const drawable = (newest: Drawing, laidOut: Drawing | null): Drawing => (laidOut === null || laidOut.key === newest.key ? newest : laidOut);

function lineOf(id: string, edges: readonly GraphEdge[], unitOf: ReadonlyMap<string, string>): Line[] {
  const [edge] = edges;
  if (edge === undefined) return [];
  const text = roomText(edges);
  const label = text === "" ? {} : { label: { width: measure(`${NOTE}px`, 6.8, text) + LABEL_AROUND, height: LABEL_HEIGHT } };
  return [{ id, from: unitOf.get(edge.from) ?? edge.from, to: unitOf.get(edge.to) ?? edge.to, weight: edge.suicide ? 0 : 1, ...label }];
}

export const groupText = (group: GraphGroup): string => `${group.family} ${group.made}/${group.members}`;
