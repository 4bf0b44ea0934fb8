/** How the whole graph is shown: as near as the room allows, and beside the small map, not below it. */
import type { FitViewOptions } from "@xyflow/react";
import type { Drawing } from "./drawing";
import type { Placed } from "./layout";
import { FAR, isFailed } from "./legible";

interface Size {
  width: number;
  height: number;
}

const ZOOM = { minZoom: 0.1, maxZoom: 1.1 };
const START = 0.8; // where not all is shown
const EDGE = 24; // free around it
const MAP: Size = { width: 230, height: 180 }; // of the small map, with what is free around it

export function fitOf(graph: Size, room: Size, hasMap: boolean): FitViewOptions {
  return fitted(graph, room, hasMap).fit;
}

/** How it is shown first: whole, or, where no name could be read then, near the task that matters most. */
export function startOf(graph: Size, room: Size, hasMap: boolean, focus: string | null): FitViewOptions {
  const { fit, zoom } = fitted(graph, room, hasMap);
  return zoom >= FAR || focus === null || room.width === 0 ? fit : { nodes: [{ id: focus }], minZoom: START, maxZoom: START };
}

/** The first task that has failed, else that runs, else that is live, else of all; none where most are in bunches, whose words are read from afar. */
export function focusOf({ tasks }: Pick<Drawing, "tasks">, { bunches }: Pick<Placed, "bunches">): string | null {
  if (2 * bunches.reduce((sum, bunch) => sum + bunch.members.length, 0) > tasks.size) return null;
  const all = [...tasks.values()];
  return (all.find((task) => isFailed(task.state)) ?? all.find((task) => task.state === "running") ?? all.find((task) => task.in_pool) ?? all[0])?.id ?? null;
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
