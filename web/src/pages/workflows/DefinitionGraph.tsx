/** The graph of a definition before any run: the first points, or those that are asked for. */
import { useQuery } from "@tanstack/react-query";
import { Background, BackgroundVariant, Controls, ReactFlow, ReactFlowProvider, useReactFlow, useStore, type FitViewOptions, type Node, type NodeProps } from "@xyflow/react";
import { memo, useEffect, useMemo, useState } from "react";
import "@xyflow/react/dist/style.css";
import { definitionGraphQuery, type Given } from "../../api/registry";
import { Button, Empty, Loading } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { countText } from "../../ui/quantities";
import type { Drawing } from "../../views/graph/drawing";
import { drawGraph, type Grouping } from "../../views/graph/drawing";
import { EdgeLayer } from "../../views/graph/EdgeLayer";
import { beginningOf, fitOf, startOf } from "../../views/graph/fitting";
import { bunchesOf } from "../../views/graph/keptNodes";
import type { Placed } from "../../views/graph/layout";
import { BunchBox, type BunchNode } from "../../views/graph/nodes";
import { DOTS, HELD, Settling, usePanning } from "../../views/graph/panning";
import { useLayout } from "../../views/graph/useLayout";
import "../../views/graph/graph.css";
import { folded } from "../run/folds";
import "../run/run.css";
import { asGraph, DRAWN_MAX, familyColours, kindOfStep } from "./definitionDrawing";
import { Refusal } from "./Findings";

/** `colour`: that of its family, if it has one. */
type StepNode = Node<{ name: string; below: string; title: string; kind: string; colour: number | null; lit: boolean }, "step">;
type FoldedNode = Node<{ name: string; count: number; colour: number | null }, "folded">;
type FrameNode = Node<{ name: string; depth: number }, "frame">;

const NO_SIZE = { width: 0, height: 0 };
const STILL = { draggable: false, selectable: false } as const;

const colourClass = (colour: number | null): string => (colour === null ? "" : ` family-${colour}`);

const StepBox = memo(function StepBox({ data: { name, below, title, kind, colour, lit } }: NodeProps<StepNode>) {
  return (
    <div className={`step-box ${kind}${colourClass(colour)}${lit ? " lit" : ""}`} title={title}>
      <span className="task-text"><b>{name}</b><small>{below}</small></span>
    </div>
  );
});

const FoldedBox = memo(function FoldedBox({ data: { name, count, colour } }: NodeProps<FoldedNode>) {
  return (
    <div className={`step-box folded${colourClass(colour)}`} title={`The family ${name}. Click to see each task`}>
      <span className="task-text"><b>{name}</b><small>{countText(count, "task")}</small></span>
    </div>
  );
});

const Frame = memo(function Frame({ data }: NodeProps<FrameNode>) {
  return <div className={`frame-box depth-${Math.min(data.depth, 3)}`}><span>{data.name}</span></div>;
});

const NODE_TYPES = { step: StepBox, folded: FoldedBox, bunch: BunchBox, frame: Frame };
const FOLDED_MIN = 25; // tasks; of more than these families are folded, unless somebody wants each
const WHOLE_MAX = 900; // boxes; of more than these only those in sight are drawn

export function DefinitionGraph({ name, version, given }: { name: string; version: string; given: Given }) {
  const [asked, setAsked] = useState({ start: "", stop: "" });
  const [grouping, setGrouping] = useState<Grouping | null>(null);
  const [direction, setDirection] = useState<"LR" | "TB">("LR");
  const [wantsFolds, setWantsFolds] = useState<boolean | null>(null);
  const [unfolded, setUnfolded] = useState<readonly string[]>([]);
  const { data, error, isFetching } = useQuery(definitionGraphQuery(name, version, asked.start, asked.stop, given));
  const graph = useMemo(() => data && asGraph(data), [data]);
  const usual = (graph?.points.length ?? 0) > 1 ? "point" : "family";
  const colours = useMemo(() => familyColours(graph?.families ?? {}), [graph]);
  const folds = colours.size > 0 && (wantsFolds ?? (graph?.tasks.length ?? 0) >= FOLDED_MIN);
  const drawing = useMemo(
    () => graph && graph.tasks.length <= DRAWN_MAX
      ? drawGraph(graph, graph.stages ? "none" : (grouping ?? usual), direction, () => true, (tasks) => folded(tasks, (one) => graph.families[one] ?? [], (id) => !folds || unfolded.includes(id), () => false, folds))
      : undefined,
    [graph, grouping, usual, direction, folds, unfolded],
  );
  return (
    <div className="graph-view definition-graph">
      <div className="view-bar">
        {(usual === "point" || asked.start !== "" || asked.stop !== "") && <Points asked={asked} onAsk={setAsked} />}
        {!graph?.stages && <label>group by <select value={grouping ?? usual} onChange={(event) => setGrouping(event.target.value as Grouping)}>
          <option value="point">point</option><option value="family">family</option><option value="both">point and family</option><option value="none">nothing</option>
        </select></label>}
        {colours.size > 0 && <label className="tick"><input type="checkbox" checked={folds} onChange={(event) => { setWantsFolds(event.target.checked); setUnfolded([]); }} /> fold families</label>}
        <Button look="quiet" onClick={() => setDirection(direction === "TB" ? "LR" : "TB")} title="Turn the graph: left to right, or top to bottom">{direction === "TB" ? "↓ down" : "→ across"}</Button>
        {graph && <span className="muted">{countText(graph.tasks.length, graph.stages ? "stage" : "task")}{graph.points.length > 1 ? ` at ${graph.points.length} points` : ""}{graph.cut ? ", and more that are not shown" : ""}</span>}
        {colours.size > 0 && <span className="family-legend" aria-label="Families">{[...colours].map(([family, colour]) => <span key={family} className={`family-${colour}`}>{plain(family)}</span>)}</span>}
      </div>
      {error !== null && !isFetching && <Refusal error={error} />}
      {graph === undefined && error === null && <Loading what="the graph" />}
      {error === null && graph && drawing === undefined && <Empty title={`${countText(graph.tasks.length, graph.stages ? "stage" : "task")} are too many to draw`}>{usual === "point" ? "Choose fewer points: fill in the fields “from” and “to” above." : "To print the graph, use the command line: tidewheel graph."}</Empty>}
      {error === null && graph && drawing && (drawing.tasks.size + drawing.folds.size === 0 ? <Empty title="There is no task between these points">{asked.start === "" && asked.stop === "" ? "The graph names no task at the first points." : "Give other points, or leave both fields empty to see the first points."}</Empty> : <ReactFlowProvider><Canvas drawing={drawing} families={graph.families} colours={colours} onUnfold={(id) => setUnfolded([...unfolded, id])} /></ReactFlowProvider>)}
    </div>
  );
}

function Points({ asked, onAsk }: { asked: { start: string; stop: string }; onAsk: (asked: { start: string; stop: string }) => void }) {
  const [start, setStart] = useState(asked.start);
  const [stop, setStop] = useState(asked.stop);
  return (
    <form className="graph-points" onSubmit={(event) => { event.preventDefault(); onAsk({ start: start.trim(), stop: stop.trim() }); }}>
      <label>from <input className="input" size={9} placeholder="the first" value={start} onChange={(event) => setStart(event.target.value)} aria-label="From this point" /></label>
      <label>to <input className="input" size={9} placeholder="a few points later" value={stop} onChange={(event) => setStop(event.target.value)} aria-label="To this point, or over this interval, such as P2D" /></label>
      <Button type="submit">Draw</Button>
    </form>
  );
}

interface Coloured {
  families: Readonly<Record<string, readonly string[]>>;
  colours: ReadonlyMap<string, number>;
}

function Canvas({ drawing: wanted, onUnfold, families, colours }: Coloured & { drawing: Drawing; onUnfold: (fold: string) => void }) {
  const [selected, setSelected] = useState<string | null>(null);
  const { placed, drawing: laidOut, error } = useLayout(wanted);
  const drawing = laidOut ?? wanted;
  const nodes = useMemo(() => (placed ? nodesOf(drawing, placed, selected, { families, colours }) : []), [drawing, placed, selected, families, colours]);
  const whole = nodes.length <= WHOLE_MAX;
  const panning = usePanning(whole);
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const fit = useMemo(() => fitOf(placed ?? NO_SIZE, { width, height }, false), [placed, width, height]);
  const start = useMemo(() => startOf(placed ?? NO_SIZE, { width, height }, false, placed ? beginningOf(placed, { width, height }) : []), [placed, width, height]);
  if (error !== null && placed === null) return <Refusal error={new Error(`The graph could not be laid out: ${error}`)} />;
  if (placed === null) return <Loading what="the layout" />;
  return (
    <ReactFlow<DrawnNode>
      viewport={HELD} onViewportChange={panning.move} nodes={nodes} nodeTypes={NODE_TYPES} nodesDraggable={false} nodesConnectable={false}
      onlyRenderVisibleElements={!whole} minZoom={0.05} maxZoom={2} fitView fitViewOptions={start} proOptions={{ hideAttribution: true }} deleteKeyCode={null}
      preventScrolling={false} zoomOnScroll={false} onNodeClick={(_, node) => node.type === "folded" ? onUnfold(node.id) : setSelected(node.type === "step" && node.id !== selected ? node.id : null)} onPaneClick={() => setSelected(null)} aria-label="Graph of the definition"
      onKeyDown={(event) => {
        const id = event.target instanceof HTMLElement ? event.target.dataset.id : undefined;
        if (event.key === "Enter" && id !== undefined && drawing.folds.has(id)) onUnfold(id);
      }}
    >
      <Background variant={BackgroundVariant.Dots} gap={DOTS} size={1} />
      <Controls showInteractive={false} fitViewOptions={fit} />
      <EdgeLayer drawing={drawing} placed={placed} selected={selected} />
      <Settling panning={panning} />
      <FitWhen of={laidOut} fit={start} />
    </ReactFlow>
  );
}

function FitWhen({ of, fit }: { of: unknown; fit: FitViewOptions }) {
  const { fitView } = useReactFlow();
  useEffect(() => {
    const timer = window.setTimeout(() => void fitView(fit), 60);
    return () => window.clearTimeout(timer);
  }, [of, fit, fitView]);
  return null;
}

type DrawnNode = StepNode | FoldedNode | BunchNode | FrameNode;

function nodesOf(drawing: Drawing, placed: Placed, selected: string | null, { families, colours }: Coloured): DrawnNode[] {
  const sizes = new Map(drawing.boxes.map((box) => [box.id, box]));
  const found: DrawnNode[] = placed.frames.map((frame, number) => ({
    id: `frame ${number}`, type: "frame", position: { x: frame.x, y: frame.y }, width: frame.width, height: frame.height, zIndex: -2,
    data: { name: frame.name, depth: frame.depth }, focusable: false, ...STILL,
  }));
  found.push(...bunchesOf(drawing, placed, (states) => countText(states.length, "task")));
  for (const [id, position] of placed.boxes) {
    const task = drawing.tasks.get(id);
    const fold = drawing.folds.get(id);
    const box = sizes.get(id);
    if (box === undefined) continue;
    const { width, height, frames } = box;
    if (fold) found.push({ id, type: "folded", position, width, height, ariaLabel: `${id}, ${countText(fold.total, "task")}, folded`, data: { name: fold.name, count: fold.total, colour: colours.get(fold.name) ?? null }, ...STILL });
    if (task === undefined) continue;
    const [family] = families[task.name] ?? [];
    const below = [task.point, family ?? ""].filter((text) => text !== "" && !frames.includes(text)).join(" · "); // its frame says the rest
    const title = [task.point === "" ? task.name : `${task.point}/${task.name}`, ...(family === undefined ? [] : [`of ${family}`])].join(" ");
    found.push({ id, type: "step", position, width, height, ariaLabel: task.point === "" ? task.name : id, data: { name: task.name, below, title, kind: kindOfStep(id), colour: family === undefined ? null : (colours.get(family) ?? null), lit: id === selected }, ...STILL });
  }
  return found;
}
