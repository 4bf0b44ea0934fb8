/** How the whole graph is shown: as near as the room allows, and beside the small map, not below it. */
import type { FitViewOptions } from "@xyflow/react";

interface Size {
  width: number;
  height: number;
}

const ZOOM = { minZoom: 0.1, maxZoom: 1.1 };
const EDGE = 24; // free around it
const MAP: Size = { width: 230, height: 180 }; // of the small map, with what is free around it

export function fitOf(graph: Size, room: Size, hasMap: boolean): FitViewOptions {
  const around = { right: 0, bottom: 0 };
  const zoomIn = (taken: typeof around) =>
    Math.min(ZOOM.maxZoom, (room.width - taken.right - 2 * EDGE) / Math.max(1, graph.width), (room.height - taken.bottom - 2 * EDGE) / Math.max(1, graph.height));
  const zoom = zoomIn(around);
  const reaches = (room.width + graph.width * zoom) / 2 > room.width - MAP.width && (room.height + graph.height * zoom) / 2 > room.height - MAP.height;
  if (hasMap && reaches) {
    const [beside, above] = [{ right: MAP.width - EDGE, bottom: 0 }, { right: 0, bottom: MAP.height - EDGE }];
    Object.assign(around, zoomIn(beside) > zoomIn(above) ? beside : above);
  }
  return { ...ZOOM, padding: { top: `${EDGE}px`, left: `${EDGE}px`, right: `${EDGE + around.right}px`, bottom: `${EDGE + around.bottom}px` } };
}
