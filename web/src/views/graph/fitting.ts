/** How the whole graph is shown: as near as the room allows, and beside the small map, not below it. */
import type { FitViewOptions } from "@xyflow/react";
import type { Drawing } from "./drawing";
import type { Place, Placed } from "./layout";
import { FAR, isFailed } from "./legible";

interface Size {
  width: number;
  height: number;
}

const ZOOM = { minZoom: 0.1, maxZoom: 1.1 };
const START = 0.8; // where not all is shown
const EDGE = 24; // free around it
const BOX: Size = { width: 200, height: 80 }; // of one task, with what is free around it
const MAP: Size = { width: 230, height: 180 }; // of the small map, with what is free around it

export function fitOf(graph: Size, room: Size, hasMap: boolean): FitViewOptions {
  return fitted(graph, room, hasMap).fit;
}

/** How it is shown first: whole, or, where no name could be read then, near the tasks that matter most. */
export function startOf(graph: Size, room: Size, hasMap: boolean, focus: readonly string[]): FitViewOptions {
  const { fit, zoom } = fitted(graph, room, hasMap);
  return zoom >= FAR || focus.length === 0 || room.width === 0 ? fit : { nodes: focus.map((id) => ({ id })), minZoom: START, maxZoom: START };
}

/** The boxes that are seen together with the upper left corner: where a graph of which nothing has run yet is read from. */
export function beginningOf({ boxes }: Pick<Placed, "boxes">, room: Size): string[] {
  const all = [...boxes].sort(([, a], [, b]) => a.x + a.y - b.x - b.y);
  const isSeen = ({ x, y }: Place) => x < room.width / START - BOX.width && y < room.height / START - BOX.height;
  const seen = all.filter(([, place]) => isSeen(place));
  return (seen.length > 0 ? seen : all.slice(0, 1)).map(([id]) => id);
}

/** The first task that has failed, else that runs, else that is live, else of all; none where most are in bunches, whose words are read from afar. */
export function focusOf({ tasks }: Pick<Drawing, "tasks">, { bunches }: Pick<Placed, "bunches">): string[] {
  if (2 * bunches.reduce((sum, bunch) => sum + bunch.members.length, 0) > tasks.size) return [];
  const all = [...tasks.values()];
  const first = all.find((task) => isFailed(task.state)) ?? all.find((task) => task.state === "running") ?? all.find((task) => task.in_pool) ?? all[0];
  return first ? [first.id] : [];
}

function fitted(graph: Size, room: Size, hasMap: boolean): { fit: FitViewOptions; zoom: number } {
  const around = { right: 0, bottom: 0 };
  const zoomIn = (taken: typeof around) =>
    Math.min(ZOOM.maxZoom, (room.width - taken.right - 2 * EDGE) / Math.max(1, graph.width), (room.height - taken.bottom - 2 * EDGE) / Math.max(1, graph.height));
  const zoom = zoomIn(around);
  const reaches = (room.width + graph.width * zoom) / 2 > room.width - MAP.width && (room.height + graph.height * zoom) / 2 > room.height - MAP.height;
  if (hasMap && reaches) {
    const [beside, above] = [{ right: MAP.width - EDGE, bottom: 0 }, { right: 0, bottom: MAP.height - EDGE }];
    Object.assign(around, zoomIn(beside) > zoomIn(above) ? beside : above);
  }
  const fit = { ...ZOOM, padding: { top: `${EDGE}px`, left: `${EDGE}px`, right: `${EDGE + around.right}px`, bottom: `${EDGE + around.bottom}px` } } as const;
  return { fit, zoom: zoomIn(around) };
}
