/**
 * All edges in one drawing, below the boxes. A component, a drawing and a store's listener for each edge, as the canvas would have it,
 * cost more than everything else together; here a line is two paths, and one that has not changed is not looked at. A line whose boxes
 * glide to other places glides with them (graph.css): lines are never hidden, since a busy run would show none.
 */
import { ViewportPortal } from "@xyflow/react";
import { memo, type ReactNode } from "react";
import type { GraphEdge } from "../../api/types";
import { strandState, strandText } from "./strands";
import type { Drawing } from "./drawing";
import { arrowPath, type Placed, type PlacedLine } from "./layout";

export const EdgeLayer = memo(function EdgeLayer({ drawing, placed, selected }: { drawing: Drawing; placed: Placed; selected: string | null }) {
  const plain: ReactNode[] = [];
  const lit: ReactNode[] = [];
  for (const [id, edges] of drawing.strands) {
    const line = placed.lines.get(id);
    if (line === undefined || line.path === "") continue;
    const isLit = selected !== null && edges.some((edge) => edge.from === selected || edge.to === selected);
    (isLit ? lit : plain).push(<DependencyLine key={id} line={line} look={lookOf(edges, isLit)} text={strandText(edges)} />);
  }
  return <ViewportPortal><svg className="dependencies" aria-hidden>{plain}{lit}</svg></ViewportPortal>;
});

function lookOf(edges: readonly GraphEdge[], isLit: boolean): string {
  const is = (what: "suicide" | "alternative") => (edges.every((edge) => edge[what]) ? what : "");
  return [strandState(edges).replace(" ", "-"), is("suicide"), is("alternative"), edges.length > 1 ? "several" : "", isLit ? "lit" : ""].filter(Boolean).join(" ");
}

const DependencyLine = memo(function DependencyLine({ line, look, text }: { line: PlacedLine; look: string; text: string }) {
  return (
    <>
      <path className={`dependency ${look}`} d={line.path} />
      {line.head !== null && <path className={`arrow-head ${look}`} d={arrowPath(line.head)} />}
      {text !== "" && <text className="edge-label" x={line.label.x} y={line.label.y}>{text}</text>}
    </>
  );
});
