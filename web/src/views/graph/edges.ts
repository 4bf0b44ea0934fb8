/** Edges where the layout puts them, as the canvas wants them. */
import { MarkerType } from "@xyflow/react";
import type { Drawing } from "./drawing";
import type { Placed } from "./layout";
import type { DependencyEdge } from "./nodes";

export function edgesOf(drawing: Drawing, placed: Placed, selected: string | null): DependencyEdge[] {
  const found: DependencyEdge[] = [];
  for (const [id, edge] of drawing.edges) {
    const line = placed.lines.get(id);
    if (line === undefined || line.path === "") continue;
    const lit = selected !== null && (edge.from === selected || edge.to === selected);
    found.push({
      id, source: edge.from, target: edge.to, type: "dependency", data: { edge, ...line, lit }, zIndex: lit ? 1 : -1,
      markerEnd: { type: MarkerType.ArrowClosed, markerUnits: "userSpaceOnUse", width: 16, height: 16, color: `var(--edge-${edge.state.replace(" ", "-")})` },
    });
  }
  return found;
}
