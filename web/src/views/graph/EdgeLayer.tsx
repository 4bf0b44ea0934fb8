/**
 * All edges in one drawing, below the boxes. A component, a drawing and a store's listener for each edge, as the canvas would have it,
 * cost more than everything else together; here an edge is two paths, and one that has not changed is not looked at.
 */
import { ViewportPortal } from "@xyflow/react";
import { memo, useLayoutEffect, useRef, type ReactNode } from "react";
import type { GraphEdge } from "../../api/types";
import { edgeText, type Drawing } from "./drawing";
import { arrowPath, type Placed, type PlacedLine } from "./layout";

const GLIDE_MS = 350; // of boxes to their new places, as graph.css has it

export const EdgeLayer = memo(function EdgeLayer({ drawing, placed, selected }: { drawing: Drawing; placed: Placed; selected: string | null }) {
  const drawn = useRef<SVGSVGElement>(null);
  // Edges lie where boxes will be: they come when those do.
  useLayoutEffect(() => {
    const still = drawn.current?.closest(".many") ?? (window.matchMedia("(prefers-reduced-motion: reduce)").matches || null);
    if (still === null) drawn.current?.animate([{ opacity: 0 }, { opacity: 0, offset: 0.5 }, { opacity: 1 }], GLIDE_MS);
  }, [placed]);
  const plain: ReactNode[] = [];
  const lit: ReactNode[] = [];
  for (const [id, edge] of drawing.edges) {
    const line = placed.lines.get(id);
    if (line === undefined || line.path === "") continue;
    const isLit = selected !== null && (edge.from === selected || edge.to === selected);
    (isLit ? lit : plain).push(<DependencyLine key={id} edge={edge} line={line} lit={isLit} />);
  }
  return <ViewportPortal><svg ref={drawn} className="dependencies" aria-hidden>{plain}{lit}</svg></ViewportPortal>;
});

const DependencyLine = memo(function DependencyLine({ edge, line, lit }: { edge: GraphEdge; line: PlacedLine; lit: boolean }) {
  const classes = [edge.state.replace(" ", "-"), edge.suicide ? "suicide" : "", edge.alternative ? "alternative" : "", lit ? "lit" : ""].filter(Boolean).join(" ");
  const text = edgeText(edge);
  return (
    <>
      <path className={`dependency ${classes}`} d={line.path} />
      {line.head !== null && <path className={`arrow-head ${classes}`} d={arrowPath(line.head)} />}
      {text !== "" && <text className="edge-label" x={line.label.x} y={line.label.y}>{text}</text>}
    </>
  );
});
