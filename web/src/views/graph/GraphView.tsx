/** The graph of a run around its live tasks: window n, grouped, live. */
import { useQuery } from "@tanstack/react-query";
import { Background, BackgroundVariant, Controls, MiniMap, ReactFlow, ReactFlowProvider, useReactFlow, type NodeMouseHandler } from "@xyflow/react";
import { useEffect, useMemo, useRef, type RefObject } from "react";
import "@xyflow/react/dist/style.css";
import { graphQuery } from "../../api/queries";
import { useLive } from "../../api/runLive";
import { useMay } from "../../api/session";
import { rowFilter } from "../../pages/run/filters";
import { useTicks } from "../../pages/run/ticks";
import { useRunPage, useViewOption } from "../../pages/run/useRunPage";
import { lookOf } from "../../ui/palette";
import { Empty, Failure, Loading } from "../../ui/parts";
import { drawGraph, type Drawing, type Grouping } from "./drawing";
import type { LayoutRequest, Placed } from "./layout";
import { DependencyLine, FrameBox, GroupBox, TaskBox, type DependencyEdge, type GraphNode } from "./nodes";
import { edgesOf } from "./edges";
import { useLayout } from "./useLayout";
import "./graph.css";

const NODE_TYPES = { task: TaskBox, group: GroupBox, frame: FrameBox };
const EDGE_TYPES = { dependency: DependencyLine };
const FIT = { minZoom: 0.3, maxZoom: 1.1, padding: 0.08 };
const GROUPINGS: readonly [Grouping, string][] = [["point", "point"], ["family", "family"], ["both", "point and family"], ["none", "nothing"]];

export function GraphView() {
  const { run, filters } = useRunPage();
  const { nodes } = useLive();
  const [edges, setEdges] = useViewOption("graph", "n", "1");
  const [grouping, setGrouping] = useViewOption("graph", "group", "point");
  const [direction, setDirection] = useViewOption("graph", "direction", "LR");
  const { data: graph, error, refetch } = useQuery(graphQuery(run, Math.min(10, Math.max(0, Number(edges) || 0))));
  const fits = useMemo(() => rowFilter({ ...filters, states: [] }, (name) => nodes[name]?.families ?? []), [filters, nodes]);
  const drawing = useMemo(
    () => graph && drawGraph(graph, grouping as Grouping, direction === "TB" ? "TB" : "LR", fits),
    [graph, grouping, direction, fits],
  );
  return (
    <div className="graph-view">
      <div className="view-bar">
        <label className="slider">within <input type="range" min="0" max="6" value={edges} onChange={(event) => setEdges(event.target.value)} aria-label="Edges around live tasks" /> <b>{edges}</b> edges</label>
        <label>group by <select value={grouping} onChange={(event) => setGrouping(event.target.value)}>{GROUPINGS.map(([value, text]) => <option key={value} value={value}>{text}</option>)}</select></label>
        <button type="button" className="button quiet" onClick={() => setDirection(direction === "TB" ? "LR" : "TB")} title="Left to right, or top to bottom" aria-label="Turn the graph">{direction === "TB" ? "↓" : "→"}</button>
        {graph && <span className="muted">{graph.tasks.length} tasks{graph.cut ? ", and more that are not shown" : ""}</span>}
        <Legend />
      </div>
      {error !== null && graph === undefined && <Failure error={error} retry={() => void refetch()} />}
      {drawing === undefined && error === null && <Loading what="the graph" />}
      {drawing && <ReactFlowProvider><Canvas drawing={drawing} /></ReactFlowProvider>}
    </div>
  );
}

function Legend() {
  return (
    <span className="graph-legend muted" aria-label="Edges">
      <i className="true" /> met <i className="open" /> open <i className="lost" /> lost
    </span>
  );
}

function Canvas({ drawing }: { drawing: Drawing }) {
  const { selected, select, filters } = useRunPage();
  const { tick, ticked } = useTicks();
  const may = useMay("operate");
  // The same tasks and edges need no new places, whatever their states.
  const held = useRef(drawing);
  if (held.current.key !== drawing.key) held.current = drawing; // eslint-disable-line react-hooks/refs -- what is kept follows from what is given
  const { placed, request, error } = useLayout(held.current.request); // eslint-disable-line react-hooks/refs
  const fits = useMemo(() => rowFilter(filters), [filters]);
  const moved = useRef(false); // by hand: from then on the view stays where it was put
  const nodes = useMemo(() => (placed ? nodesOf(drawing, placed, selected, fits) : []), [drawing, placed, selected, fits]);
  const edges = useMemo(() => (placed ? edgesOf(drawing, placed, selected) : []), [drawing, placed, selected]);
  const onNodeClick: NodeMouseHandler<GraphNode> = (event, node) => {
    if (node.type !== "task") return;
    if ((event.ctrlKey || event.metaKey || event.shiftKey) && may) tick([node.id], !ticked.has(node.id));
    else select(node.id);
  };
  if (error !== null && placed === null) return <Failure error={new Error(`The graph could not be laid out: ${error}`)} />;
  if (placed === null) return <Loading what="the layout" />;
  if (drawing.tasks.size === 0) return <Empty title="No task is here">No task is live or fits the filters. Show more edges, or clear the filters.</Empty>;
  return (
    <ReactFlow<GraphNode, DependencyEdge>
      nodes={nodes} edges={edges} nodeTypes={NODE_TYPES} edgeTypes={EDGE_TYPES} onNodeClick={onNodeClick} onPaneClick={() => select(null)}
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

function nodesOf(drawing: Drawing, placed: Placed, selected: string | null, fits: ReturnType<typeof rowFilter>): GraphNode[] {
  const still = { draggable: false, selectable: false, focusable: false } as const;
  const found: GraphNode[] = placed.frames.map((frame) => ({
    id: `frame ${frame.depth} ${frame.name} ${Math.round(frame.x)} ${Math.round(frame.y)}`,
    type: "frame", position: { x: frame.x, y: frame.y }, width: frame.width, height: frame.height, zIndex: -2,
    data: { name: frame.name, depth: frame.depth }, ...still,
  }));
  const sizes = new Map(drawing.request.boxes.map((box) => [box.id, box]));
  for (const [id, position] of placed.boxes) {
    const task = drawing.tasks.get(id);
    const group = drawing.groups.get(id);
    if (task) {
      const box = sizes.get(id);
      found.push({
        id, type: "task", position, width: box?.width ?? 120, height: box?.height ?? 38, focusable: true, ariaLabel: `${id}, ${task.state}`,
        data: { task, selected: id === selected, faded: !fits(task) },
      });
    } else if (group) {
      found.push({ id, type: "group", position, height: 28, data: { group }, ...still });
    }
  }
  return found;
}
