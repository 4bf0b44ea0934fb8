/** The graph of a run around its live tasks: window n, grouped, live. */
import { useQuery } from "@tanstack/react-query";
import { Background, BackgroundVariant, Controls, MiniMap, ReactFlow, ReactFlowProvider, useReactFlow, type NodeMouseHandler } from "@xyflow/react";
import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type RefObject } from "react";
import "@xyflow/react/dist/style.css";
import { useActing } from "../../acting/Acting";
import { withBound, withPoint } from "../../acting/Bounds";
import { summaryQuery } from "../../api/queries";
import { useLive } from "../../api/runLive";
import { useMay } from "../../api/session";
import { rowFilter } from "../../pages/run/filters";
import { useTicks } from "../../pages/run/ticks";
import { useRunPage, useViewOption } from "../../pages/run/useRunPage";
import { lookOf } from "../../ui/palette";
import { FlowMark, laterFlows } from "../../ui/FlowMark";
import { Button, Empty, Failure, Loading } from "../../ui/parts";
import { drawGraph, type Drawing, type Grouping } from "./drawing";
import { edgesOf } from "./edges";
import type { LayoutRequest, Placed } from "./layout";
import { DependencyLine, FrameBox, GroupBox, TaskBox, type DependencyEdge, type GraphNode } from "./nodes";
import { markText, type Preview } from "./preview";
import { useGraph } from "./useGraph";
import { useLayout } from "./useLayout";
import "./graph.css";

const NODE_TYPES = { task: TaskBox, group: GroupBox, frame: FrameBox };
const EDGE_TYPES = { dependency: DependencyLine };
const DRAWN_MAX = 1_500; // tasks, unless somebody insists
const FIT = { minZoom: 0.3, maxZoom: 1.1, padding: 0.08 };
const GROUPINGS: readonly [Grouping, string][] = [["point", "point"], ["family", "family"], ["both", "point and family"], ["none", "nothing"]];

export function GraphView() {
  const { run, filters, selected } = useRunPage();
  const { nodes } = useLive();
  const { data: summary } = useQuery(summaryQuery(run));
  const [edges, setEdges] = useViewOption("graph", "n", "1");
  const [grouping, setGrouping] = useViewOption("graph", "group", "point");
  const [direction, setDirection] = useViewOption("graph", "direction", "LR");
  const { graph, error, refetch, preview, around, setAround, outside, lostSelection } = useGraph(Math.min(10, Math.max(0, Number(edges) || 0)));
  const flows = useMemo(() => laterFlows([...new Set(graph?.tasks.flatMap((task) => task.flows))]), [graph]);
  const stop = summary !== undefined && summary.points.to_come !== null ? summary.points.final : null;
  const fits = useMemo(() => rowFilter({ ...filters, states: [] }, (name) => nodes[name]?.families ?? []), [filters, nodes]);
  const [allDrawn, setAllDrawn] = useState(false);
  const whole = preview !== null; // what would happen is drawn, whatever the filters say
  const drawing = useMemo(
    () => graph && drawGraph(graph, grouping as Grouping, direction === "TB" ? "TB" : "LR", whole ? () => true : fits),
    [graph, grouping, direction, fits, whole],
  );
  return (
    <div className="graph-view">
      <div className="view-bar">
        <label className="slider">within <input type="range" min="0" max="6" value={edges} onChange={(event) => setEdges(event.target.value)} aria-label="Edges around live tasks" /> <b>{edges}</b> edges</label>
        <label>group by <select value={grouping} onChange={(event) => setGrouping(event.target.value)}>{GROUPINGS.map(([value, text]) => <option key={value} value={value}>{text}</option>)}</select></label>
        <button type="button" className="button quiet" onClick={() => setDirection(direction === "TB" ? "LR" : "TB")} title="Left to right, or top to bottom" aria-label="Turn the graph">{direction === "TB" ? "↓" : "→"}</button>
        {graph && <span className="muted">{graph.tasks.length} tasks{graph.cut ? ", and more that are not shown" : ""}</span>}
        {around !== "" && <Button onClick={() => setAround("")}>{around === "task" ? "around the task" : "around what was found"} ✕</Button>}
        {around !== "found" && outside.length > 0 && <Button look="primary" onClick={() => setAround("found")}>Show {outside.length} found outside of this window</Button>}
        {around !== "found" && filters.name !== "" && outside.length === 0 && drawing?.tasks.size === 0 && <Button look="primary" onClick={() => setAround("found")}>Look in the whole graph</Button>}
        {around === "" && lostSelection && <Button onClick={() => setAround("task")}>Show {selected} here</Button>}
        {flows.length > 0 && <span className="flow-marks" aria-label="Flows">{flows.map((flow) => <FlowMark key={flow} flow={flow} word />)}</span>}
        <Legend preview={preview} />
      </div>
      {error !== null && graph === undefined && <Failure error={error} retry={() => void refetch()} />}
      {drawing === undefined && error === null && <Loading what="the graph" />}
      {drawing && (drawing.tasks.size > DRAWN_MAX && !allDrawn
        ? <TooMany count={drawing.tasks.size} onDraw={() => setAllDrawn(true)} />
        : <ReactFlowProvider><Canvas drawing={drawing} preview={preview} stop={stop} /></ReactFlowProvider>)}
    </div>
  );
}

/** Nobody reads thousands of boxes, and to place them takes minutes. */
function TooMany({ count, onDraw }: { count: number; onDraw: () => void }) {
  const { views, toggleView } = useRunPage();
  return (
    <Empty title={`${count} tasks are too many to draw`}>
      Filter by name, family or point above, or show fewer edges.
      <p>{!views.includes("table") && <Button look="primary" onClick={() => toggleView("table")}>Show the table</Button>} <Button onClick={onDraw}>Draw them all the same</Button></p>
    </Empty>
  );
}

function Legend({ preview }: { preview: Preview | null }) {
  if (preview !== null) return <span className="graph-legend muted"><b className="order-mark">1</b> would run <b className="order-mark waits">…</b> would wait {preview.picking && <><b className="order-mark ends">⊣</b> ends there</>}</span>;
  return (
    <span className="graph-legend muted" aria-label="Edges">
      <i className="true" /> met <i className="open" /> open <i className="lost" /> lost
    </span>
  );
}

function Canvas({ drawing, preview, stop }: { drawing: Drawing; preview: Preview | null; stop: string | null }) {
  const { selected, select, filters } = useRunPage();
  const { tick, ticked } = useTicks();
  const may = useMay("operate");
  const { action, change } = useActing();
  // The same tasks and edges need no new places, whatever their states.
  const held = useRef(drawing);
  if (held.current.key !== drawing.key) held.current = drawing; // eslint-disable-line react-hooks/refs -- what is kept follows from what is given
  const { placed, request, error } = useLayout(held.current.request); // eslint-disable-line react-hooks/refs
  const fits = useMemo(() => rowFilter(filters), [filters]);
  const moved = useRef(false); // by hand: from then on the view stays where it was put
  const nodes = useMemo(() => (placed ? nodesOf(drawing, placed, { selected, fits, preview, stop }) : []), [drawing, placed, selected, fits, preview, stop]);
  const edges = useMemo(() => (placed ? edgesOf(drawing, placed, selected) : []), [drawing, placed, selected]);
  const choose = (id: string) => {
    if (preview?.picking && action !== null) change(withBound(action, id));
    else select(id);
  };
  const onNodeClick: NodeMouseHandler<GraphNode> = (event, node) => {
    if (node.type === "frame" && preview?.picking && action !== null && drawing.points.has(node.data.name)) change(withPoint(action, node.data.name));
    if (node.type !== "task") return;
    if ((event.ctrlKey || event.metaKey || event.shiftKey) && may) tick([node.id], !ticked.has(node.id));
    else choose(node.id);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const id = event.target instanceof HTMLElement ? event.target.dataset.id : undefined;
    if ((event.key !== "Enter" && event.key !== " ") || id === undefined || !drawing.tasks.has(id)) return;
    event.preventDefault();
    choose(id);
  };
  if (error !== null && placed === null) return <Failure error={new Error(`The graph could not be laid out: ${error}`)} />;
  if (placed === null) return <Loading what="the layout" />;
  if (drawing.tasks.size === 0) return <Empty title="No task is here">No task is live or fits the filters. Show more edges, or clear the filters.</Empty>;
  return (
    <ReactFlow<GraphNode, DependencyEdge>
      nodes={nodes} edges={edges} nodeTypes={NODE_TYPES} edgeTypes={EDGE_TYPES} onNodeClick={onNodeClick} onPaneClick={() => { if (preview === null) select(null); }} onKeyDown={onKeyDown}
      nodesDraggable={false} nodesConnectable={false} edgesFocusable={false} elevateEdgesOnSelect={false} onlyRenderVisibleElements={nodes.length > 150}
      minZoom={0.05} maxZoom={2} fitView fitViewOptions={FIT} proOptions={{ hideAttribution: true }} deleteKeyCode={null}
      onMoveStart={(event) => { if (event !== null) moved.current = true; }}
      aria-label="Graph of tasks"
    >
      <Background variant={BackgroundVariant.Dots} gap={22} size={1} />
      <Controls showInteractive={false} onFitView={() => { moved.current = false; }} fitViewOptions={FIT} />
      {drawing.tasks.size > 30 && <MiniMap pannable zoomable nodeColor={miniColour} nodeStrokeWidth={0} />}
      <Follow selected={selected} placed={placed} />
      <Fit of={request} moved={moved} />
    </ReactFlow>
  );
}

const miniColour = (node: GraphNode): string => (node.type === "task" ? lookOf(node.data.task.state).colour : "transparent");

/** A task that was selected elsewhere is brought into sight. */
function Follow({ selected, placed }: { selected: string | null; placed: Placed }) {
  const { setCenter, getViewport, getZoom } = useReactFlow();
  const seen = useRef<string | null>(selected);
  useEffect(() => {
    if (selected === null || selected === seen.current) return;
    seen.current = selected;
    const box = placed.boxes.get(selected);
    if (box === undefined) return;
    const { x, y, zoom } = getViewport();
    const pane = document.querySelector(".graph-view .react-flow")?.getBoundingClientRect();
    const [left, top] = [box.x * zoom + x, box.y * zoom + y];
    const visible = pane && left > 0 && top > 0 && left < pane.width - 80 && top < pane.height - 40;
    if (!visible) void setCenter(box.x + 60, box.y + 20, { zoom: Math.max(getZoom(), 0.7), duration: 400 });
  }, [selected, placed, setCenter, getViewport, getZoom]);
  return null;
}

/** A graph that has grown is shown whole, unless somebody looks at a part of it. */
function Fit({ of, moved }: { of: LayoutRequest | null; moved: RefObject<boolean> }) {
  const { fitView } = useReactFlow();
  const seen = useRef(of);
  useEffect(() => {
    if (of === seen.current) return;
    seen.current = of;
    if (!moved.current) window.setTimeout(() => void fitView({ ...FIT, duration: 300 }), 60);
  }, [of, moved, fitView]);
  return null;
}

interface Looks {
  selected: string | null;
  fits: ReturnType<typeof rowFilter>;
  preview: Preview | null;
  stop: string | null;
}

function nodesOf(drawing: Drawing, placed: Placed, { selected, fits, preview, stop }: Looks): GraphNode[] {
  const still = { draggable: false, selectable: false, focusable: false } as const;
  const found: GraphNode[] = placed.frames.map((frame) => ({
    id: `frame ${frame.depth} ${frame.name} ${Math.round(frame.x)} ${Math.round(frame.y)}`,
    type: "frame", position: { x: frame.x, y: frame.y }, width: frame.width, height: frame.height, zIndex: -2,
    data: { name: frame.name, depth: frame.depth, stop: frame.name === stop, until: preview !== null && frame.name === preview.until, picking: preview?.picking === true && drawing.points.has(frame.name) }, ...still,
  }));
  const sizes = new Map(drawing.request.boxes.map((box) => [box.id, box]));
  for (const [id, position] of placed.boxes) {
    const task = drawing.tasks.get(id);
    const group = drawing.groups.get(id);
    if (task) {
      const box = sizes.get(id);
      const mark = preview?.marks.get(id);
      found.push({
        id, type: "task", position, width: box?.width ?? 120, height: box?.height ?? 38, focusable: true, ariaLabel: [id, task.state, markText(mark)].filter(Boolean).join(", "),
        data: { task, selected: id === selected, faded: preview === null ? !fits(task) : mark === undefined, ...(mark ? { mark } : {}) },
      });
    } else if (group) {
      found.push({ id, type: "group", position, height: 28, data: { group }, ...still });
    }
  }
  return found;
}
