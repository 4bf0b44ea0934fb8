/** The graph of a definition before any run: the first points, or those that are asked for. */
import { useQuery } from "@tanstack/react-query";
import { Background, BackgroundVariant, Controls, ReactFlow, ReactFlowProvider, useReactFlow, type Node, type NodeProps } from "@xyflow/react";
import { memo, useEffect, useMemo, useState } from "react";
import "@xyflow/react/dist/style.css";
import { definitionGraphQuery } from "../../api/registry";
import { Button, Empty, Loading } from "../../ui/parts";
import { countText } from "../../ui/quantities";
import type { Drawing } from "../../views/graph/drawing";
import { drawGraph, type Grouping } from "../../views/graph/drawing";
import { EdgeLayer } from "../../views/graph/EdgeLayer";
import { bunchesOf } from "../../views/graph/keptNodes";
import type { Placed } from "../../views/graph/layout";
import { BunchBox, type BunchNode } from "../../views/graph/nodes";
import { DOTS, HELD, Settling, usePanning } from "../../views/graph/panning";
import { useLayout } from "../../views/graph/useLayout";
import "../../views/graph/graph.css";
import "../run/run.css";
import { asGraph, DRAWN_MAX, isTrigger } from "./definitionDrawing";
import { Refusal } from "./Findings";

type StepNode = Node<{ name: string; point: string; lit: boolean }, "step">;
type FrameNode = Node<{ name: string; depth: number }, "frame">;

const FIT = { minZoom: 0.2, maxZoom: 1.1, padding: 0.08 };
const STILL = { draggable: false, selectable: false } as const;

const StepBox = memo(function StepBox({ data: { name, point, lit } }: NodeProps<StepNode>) {
  return (
    <div className={`step-box${isTrigger(name) ? " trigger" : ""}${lit ? " lit" : ""}`} title={point === "" ? name : `${point}/${name}`}>
      <span className="task-text"><b>{name}</b><small>{point}</small></span>
    </div>
  );
});

const Frame = memo(function Frame({ data }: NodeProps<FrameNode>) {
  return <div className={`frame-box depth-${Math.min(data.depth, 3)}`}><span>{data.name}</span></div>;
});

const NODE_TYPES = { step: StepBox, bunch: BunchBox, frame: Frame };
const WHOLE_MAX = 900; // boxes; of more than these only those in sight are drawn

export function DefinitionGraph({ name, version, parameters }: { name: string; version: string; parameters: Record<string, unknown> }) {
  const [asked, setAsked] = useState({ start: "", stop: "" });
  const [grouping, setGrouping] = useState<Grouping | null>(null);
  const [direction, setDirection] = useState<"LR" | "TB">("LR");
  const { data, error, isFetching } = useQuery(definitionGraphQuery(name, version, asked.start, asked.stop, parameters));
  const graph = useMemo(() => data && asGraph(data), [data]);
  const usual = (graph?.points.length ?? 0) > 1 ? "point" : "family";
  const drawing = useMemo(
    () => graph && graph.tasks.length <= DRAWN_MAX ? drawGraph(graph, graph.stages ? "none" : (grouping ?? usual), direction, () => true) : undefined,
    [graph, grouping, usual, direction],
  );
  return (
    <div className="graph-view definition-graph">
      <div className="view-bar">
        {(usual === "point" || asked.start !== "" || asked.stop !== "") && <Points asked={asked} onAsk={setAsked} />}
        {!graph?.stages && <label>group by <select value={grouping ?? usual} onChange={(event) => setGrouping(event.target.value as Grouping)}>
          <option value="point">point</option><option value="family">family</option><option value="both">point and family</option><option value="none">nothing</option>
        </select></label>}
        <Button look="quiet" onClick={() => setDirection(direction === "TB" ? "LR" : "TB")} title="Turn the graph: left to right, or top to bottom">{direction === "TB" ? "↓ down" : "→ across"}</Button>
        {graph && <span className="muted">{countText(graph.tasks.length, graph.stages ? "stage" : "task")}{graph.points.length > 1 ? ` at ${graph.points.length} points` : ""}{graph.cut ? ", and more that are not shown" : ""}</span>}
      </div>
      {error !== null && !isFetching && <Refusal error={error} />}
      {graph === undefined && error === null && <Loading what="the graph" />}
      {error === null && graph && drawing === undefined && <Empty title={`${graph.tasks.length} tasks are too many to draw`}>Give a point from which and one until which it shall be drawn.</Empty>}
      {error === null && drawing && (drawing.tasks.size === 0 ? <Empty title="No task is between these points">Give others, or none for the first few.</Empty> : <ReactFlowProvider><Canvas drawing={drawing} /></ReactFlowProvider>)}
    </div>
  );
}

function Points({ asked, onAsk }: { asked: { start: string; stop: string }; onAsk: (asked: { start: string; stop: string }) => void }) {
  const [start, setStart] = useState(asked.start);
  const [stop, setStop] = useState(asked.stop);
  return (
    <form className="graph-points" onSubmit={(event) => { event.preventDefault(); onAsk({ start: start.trim(), stop: stop.trim() }); }}>
      <label>from <input className="input" size={9} placeholder="the first" value={start} onChange={(event) => setStart(event.target.value)} aria-label="From this point" /></label>
      <label>to <input className="input" size={9} placeholder="a few on" value={stop} onChange={(event) => setStop(event.target.value)} aria-label="To this point, or so far, such as P2D" /></label>
      <Button type="submit">Draw</Button>
    </form>
  );
}

function Canvas({ drawing: wanted }: { drawing: Drawing }) {
  const [selected, setSelected] = useState<string | null>(null);
  const { placed, drawing: laidOut, error } = useLayout(wanted);
  const drawing = laidOut ?? wanted;
  const nodes = useMemo(() => (placed ? nodesOf(drawing, placed, selected) : []), [drawing, placed, selected]);
  const whole = nodes.length <= WHOLE_MAX;
  const panning = usePanning(whole);
  if (error !== null && placed === null) return <Refusal error={new Error(`The graph could not be laid out: ${error}`)} />;
  if (placed === null) return <Loading what="the layout" />;
  return (
    <ReactFlow<StepNode | BunchNode | FrameNode>
      viewport={HELD} onViewportChange={panning.move} nodes={nodes} nodeTypes={NODE_TYPES} nodesDraggable={false} nodesConnectable={false}
      onlyRenderVisibleElements={!whole} minZoom={0.05} maxZoom={2} fitView fitViewOptions={FIT} proOptions={{ hideAttribution: true }} deleteKeyCode={null}
      preventScrolling={false} zoomOnScroll={false} onNodeClick={(_, node) => setSelected(node.type === "step" && node.id !== selected ? node.id : null)} onPaneClick={() => setSelected(null)} aria-label="Graph of the definition"
    >
      <Background variant={BackgroundVariant.Dots} gap={DOTS} size={1} />
      <Controls showInteractive={false} fitViewOptions={FIT} />
      <EdgeLayer drawing={drawing} placed={placed} selected={selected} />
      <Settling panning={panning} />
      <FitWhen of={laidOut} />
    </ReactFlow>
  );
}

function FitWhen({ of }: { of: unknown }) {
  const { fitView } = useReactFlow();
  useEffect(() => {
    const timer = window.setTimeout(() => void fitView(FIT), 60);
    return () => window.clearTimeout(timer);
  }, [of, fitView]);
  return null;
}

function nodesOf(drawing: Drawing, placed: Placed, selected: string | null): (StepNode | BunchNode | FrameNode)[] {
  const sizes = new Map(drawing.boxes.map((box) => [box.id, box]));
  const found: (StepNode | BunchNode | FrameNode)[] = placed.frames.map((frame, number) => ({
    id: `frame ${number}`, type: "frame", position: { x: frame.x, y: frame.y }, width: frame.width, height: frame.height, zIndex: -2,
    data: { name: frame.name, depth: frame.depth }, focusable: false, ...STILL,
  }));
  found.push(...bunchesOf(drawing, placed));
  for (const [id, position] of placed.boxes) {
    const task = drawing.tasks.get(id);
    const box = sizes.get(id);
    if (task && box) found.push({ id, type: "step", position, width: box.width, height: box.height, ariaLabel: task.point === "" ? task.name : id, data: { name: task.name, point: task.point, lit: id === selected }, ...STILL });
  }
  return found;
}
