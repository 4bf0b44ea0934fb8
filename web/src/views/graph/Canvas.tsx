/** The canvas on which the graph of a run is drawn, moved and clicked. */
import { Background, BackgroundVariant, Controls, ReactFlow, useReactFlow, useStore, type FitViewOptions, type NodeMouseHandler } from "@xyflow/react";
import { memo, useEffect, useMemo, useRef, useState, type FocusEvent, type KeyboardEvent, type RefObject } from "react";
import "@xyflow/react/dist/style.css";
import { useActing } from "../../acting/Acting";
import { withBound, withPoint } from "../../acting/Bounds";
import { useMayAct } from "../../api/runLive";
import { rowFilter } from "../../pages/run/filters";
import { useTicks } from "../../pages/run/ticks";
import { useRunPage } from "../../pages/run/useRunPage";
import { elementOf } from "../../ui/focus";
import { Empty, Failure, Loading } from "../../ui/parts";
import { drawable, type Drawing } from "./drawing";
import { EdgeLayer } from "./EdgeLayer";
import { fitOf, focusOf, startOf } from "./fitting";
import { KeptNodes } from "./keptNodes";
import type { Placed } from "./layout";
import { BunchBox, FoldBox, FrameBox, GroupBox, TaskBox, type GraphNode } from "./nodes";
import { Overview } from "./Overview";
import { DOTS, HELD, Settling, usePanning } from "./panning";
import type { Preview } from "./preview";
import { startAt, stepFrom } from "./steps";
import { useLayout } from "./useLayout";

const NODE_TYPES = { task: TaskBox, fold: FoldBox, family: GroupBox, bunch: BunchBox, frame: FrameBox };
const NO_SIZE = { width: 0, height: 0 };
const PRO = { hideAttribution: true };
const WHOLE_MAX = 900; // boxes; of more than these only those in sight are drawn
const MAPPED_MIN = 31; // of these there is a small map
const NARROW = "(max-width: 900px)"; // as graph.css has it: no small map
const CALM_MAX = 120; // of more than these none glides and none breathes

export const Canvas = memo(function Canvas({ drawing: wanted, preview, stop, unfold }: { drawing: Drawing; preview: Preview | null; stop: string | null; unfold: (fold: string) => void }) {
  const { selected, select, filters } = useRunPage();
  const { tick, ticked } = useTicks();
  const may = useMayAct();
  const { action, change } = useActing();
  // The same tasks and edges need no new places, whatever their states.
  const held = useRef(wanted);
  if (held.current.key !== wanted.key) held.current = wanted; // eslint-disable-line react-hooks/refs -- what is kept follows from what is given
  const { placed, drawing: laidOut, error } = useLayout(held.current); // eslint-disable-line react-hooks/refs
  const drawing = drawable(wanted, laidOut);
  const fits = useMemo(() => rowFilter(filters), [filters]);
  const moved = useRef(false); // by hand: from then on the view stays where it was put
  const [kept] = useState(() => new KeptNodes());
  const nodes = useMemo(() => (placed ? kept.of(drawing, placed, { selected, fits, preview, stop }) : []), [kept, drawing, placed, selected, fits, preview, stop]);
  const whole = nodes.length <= WHOLE_MAX;
  const panning = usePanning(whole);
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const hasMap = drawing.tasks.size >= MAPPED_MIN;
  const isMapped = hasMap && !window.matchMedia(NARROW).matches;
  const fit = useMemo(() => fitOf(placed ?? NO_SIZE, { width, height }, isMapped), [placed, width, height, isMapped]);
  const start = useMemo(() => startOf(placed ?? NO_SIZE, { width, height }, isMapped, placed && laidOut ? focusOf(laidOut, placed) : []), [placed, laidOut, width, height, isMapped]);
  const { setCenter, getZoom } = useReactFlow();
  const at = useRef<string | null>(null); // the box that had the focus last
  /** Of boxes that are too far away to be drawn, the canvas comes first. */
  const focus = (id: string) => {
    at.current = id;
    const box = placed?.boxes.get(id);
    if (elementOf(id) === null && box !== undefined) void setCenter(box.x + 60, box.y + 20, { zoom: getZoom() }).then(() => elementOf(id)?.focus());
    else elementOf(id)?.focus();
  };
  const choose = (id: string) => {
    if (preview?.picking && action !== null) change(withBound(action, id));
    else select(id);
  };
  const onNodeClick: NodeMouseHandler<GraphNode> = (event, node) => {
    if (node.type === "frame" && preview?.picking && action !== null && drawing.points.has(node.data.name)) change(withPoint(action, node.data.name));
    if (node.type !== "task" && node.type !== "fold") return;
    if ((event.ctrlKey || event.metaKey || event.shiftKey) && may) tick([node.id], !ticked.has(node.id));
    else if (node.type === "fold") unfold(node.id);
    else choose(node.id);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const id = event.target instanceof HTMLElement ? event.target.dataset.task : undefined;
    if (id === undefined || placed === null || event.ctrlKey || event.metaKey) return;
    const next = stepFrom(event.key, id, drawing, placed);
    if (next !== null) focus(next);
    else if (event.key === " " && may && preview === null) tick([id], !ticked.has(id));
    else if (event.key !== "Enter" && event.key !== " ") return;
    else if (drawing.folds.has(id)) unfold(id);
    else choose(id);
    event.preventDefault();
  };
  if (error !== null && placed === null) return <Failure error={new Error(`The graph could not be laid out: ${error}`)} />;
  if (placed === null) return <Loading what="the layout" />;
  if (drawing.tasks.size + drawing.folds.size === 0) return <Empty title="There are no tasks">No task has been created yet, or no task matches the filters.</Empty>;
  const enter = (event: FocusEvent<HTMLDivElement>) => {
    const task = event.target.closest<HTMLElement>("[data-task]")?.dataset.task;
    if (task !== undefined) at.current = task;
    event.currentTarget.tabIndex = task === undefined ? 0 : -1; // Shift Tab leaves the graph
    const start = at.current !== null && placed.boxes.has(at.current) ? at.current : startAt(selected, drawing, placed);
    if (event.target === event.currentTarget && start !== null && event.currentTarget.matches(":focus-visible")) focus(start); // not by a click
  };
  return (
    <div className="graph-canvas" role="group" aria-label="Tasks of the graph; the arrow keys go from task to task" tabIndex={0} onFocus={enter} onBlur={(event) => { event.currentTarget.tabIndex = 0; }}>
    <ReactFlow<GraphNode>
      className={nodes.length > CALM_MAX ? "many" : ""} viewport={HELD} onViewportChange={panning.move}
      nodes={nodes} nodeTypes={NODE_TYPES} onNodeClick={onNodeClick} onPaneClick={() => { if (preview === null && selected !== null) select(null); }} onKeyDown={onKeyDown}
      nodesDraggable={false} nodesConnectable={false} onlyRenderVisibleElements={!whole}
      minZoom={0.05} maxZoom={2} fitView fitViewOptions={start} proOptions={PRO} deleteKeyCode={null}
      onMoveStart={(event) => { if (event !== null) moved.current = true; }}
      aria-label="Graph of tasks"
    >
      <Background variant={BackgroundVariant.Dots} gap={DOTS} size={1} />
      <Controls showInteractive={false} onFitView={() => { moved.current = start.nodes !== undefined; }} fitViewOptions={fit} />
      <EdgeLayer drawing={drawing} placed={placed} selected={selected} />
      {hasMap && <Overview drawing={drawing} placed={placed} panning={panning} />}
      <Settling panning={panning} />
      <Follow selected={selected} placed={placed} />
      <Fit of={laidOut} fit={start} moved={moved} />
    </ReactFlow>
    </div>
  );
});

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

/** A graph that has grown, or has another room, is shown anew, unless somebody looks at a part of it. */
function Fit({ of, fit, moved }: { of: Drawing | null; fit: FitViewOptions; moved: RefObject<boolean> }) {
  const { fitView } = useReactFlow();
  const seen = useRef({ of, fit });
  useEffect(() => {
    if (of === seen.current.of && fit === seen.current.fit) return;
    seen.current = { of, fit };
    // A hand may take hold of the graph before it is fitted.
    window.setTimeout(() => { if (!moved.current) void fitView({ ...fit, duration: 300 }); }, 60);
  }, [of, fit, moved, fitView]);
  return null;
}
