/** The graph of a run around its live tasks: window n, grouped, live. */
import { useQuery } from "@tanstack/react-query";
import { ReactFlowProvider } from "@xyflow/react";
import { useMemo, useState } from "react";
import { summaryQuery } from "../../api/queries";
import { useLiveOf } from "../../api/runLive";
import { shownId, taskWord } from "../../api/shown";
import type { RunSummary } from "../../api/types";
import { rowFilter } from "../../pages/run/filters";
import { folded, isMapped, useUnfolded } from "../../pages/run/folds";
import { useRunPage, useViewOption } from "../../pages/run/useRunPage";
import { FlowMark, laterFlows } from "../../ui/FlowMark";
import { Button, Empty, Failure, Loading } from "../../ui/parts";
import { countText } from "../../ui/quantities";
import { Canvas } from "./Canvas";
import { drawGraph, type Grouping } from "./drawing";
import type { Preview } from "./preview";
import { useGraph } from "./useGraph";
import "./graph.css";

const DRAWN_MAX = 1_500; // tasks, unless somebody insists
const GROUPINGS: readonly [Grouping, string][] = [["point", "point"], ["family", "family"], ["both", "point and family"], ["none", "nothing"]];

export function GraphView() {
  const { run, filters, selected } = useRunPage();
  const nodes = useLiveOf((live) => live.nodes);
  const { data: stop = null } = useQuery({ ...summaryQuery(run), select: stopPoint });
  const [edges, setEdges] = useViewOption("graph", "n", "1");
  const stages = useLiveOf((live) => live.stages);
  const [chosen, setGrouping] = useViewOption("graph", "group", "point");
  const grouping = stages ? "none" : chosen; // nobody has written points or families there
  const [direction, setDirection] = useViewOption("graph", "direction", "LR");
  const { graph, error, refetch, preview, around, setAround, outside, lostSelection, over } = useGraph(Math.min(10, Math.max(0, Number(edges) || 0)));
  const flows = useMemo(() => laterFlows([...new Set(graph?.tasks.flatMap((task) => task.flows))]), [graph]);
  const fits = useMemo(() => rowFilter({ ...filters, states: [] }, (name) => nodes[name]?.families ?? []), [filters, nodes]);
  const [allDrawn, setAllDrawn] = useState(false);
  const { isUnfolded, unfold, foldAll } = useUnfolded("graph");
  const [families, setFamilies] = useViewOption("graph", "families", "");
  const whole = preview !== null; // what would happen is drawn, whatever the filters say
  const drawing = useMemo(
    () => graph && drawGraph(
      graph, grouping as Grouping, direction === "TB" ? "TB" : "LR", whole ? () => true : fits,
      (tasks) => folded(tasks, (name) => graph.families[name] ?? [], (id) => filters.name !== "" || isUnfolded(id), (id) => id === selected || preview?.marks.has(id) === true, families === "folded"),
    ),
    [graph, grouping, direction, fits, whole, filters.name, isUnfolded, selected, preview, families],
  );
  return (
    <div className="graph-view">
      <div className="view-bar">
        <label className="slider">within <input type="range" min="0" max="6" value={edges} onChange={(event) => setEdges(event.target.value)} aria-label="Edges around the tasks in the pool" /> <b>{edges}</b> {edges === "1" ? "edge" : "edges"} of {around === "" ? (over ? (stages ? "the last stages" : "the last points") : "the tasks in the pool") : around === "task" ? shownId(selected ?? "") : "what was found"}</label>
        {!stages && <label>group by <select value={grouping} onChange={(event) => setGrouping(event.target.value)}>{GROUPINGS.map(([value, text]) => <option key={value} value={value}>{text}</option>)}</select></label>}
        <button type="button" className="button quiet" onClick={() => setDirection(direction === "TB" ? "LR" : "TB")} title="Turn the graph: left to right, or top to bottom">{direction === "TB" ? "↓ down" : "→ across"}</button>
        {graph && <span className="muted">{countText(graph.tasks.length, taskWord())}{graph.cut ? ", and more that are not shown" : ""}</span>}
        {around !== "" && <Button onClick={() => setAround("")}>{over ? `Back to the last ${stages ? "stages" : "points"}` : "Back to the tasks in the pool"} ✕</Button>}
        {around !== "found" && outside.length > 0 && <Button look="primary" onClick={() => setAround("found")}>Show {countText(outside.length, `matching ${taskWord()}`)} outside of this window</Button>}
        {around !== "found" && filters.name !== "" && outside.length === 0 && drawing?.tasks.size === 0 && drawing.folds.size === 0 && <Button look="primary" onClick={() => setAround("found")}>Search the whole graph</Button>}
        {around === "" && lostSelection && <Button onClick={() => setAround("task")}>Show {shownId(selected ?? "")} here</Button>}
        {!stages && graph && hasFamilies(graph.families) && <label className="tick"><input type="checkbox" checked={families === "folded"} onChange={(event) => setFamilies(event.target.checked ? "folded" : "")} /> fold families</label>}
        {foldAll !== null && <Button onClick={foldAll}>Fold again</Button>}
        {flows.length > 0 && !stages && <span className="flow-marks" aria-label="Flows">{flows.map((flow) => <FlowMark key={flow} flow={flow} word />)}</span>}
        <Legend preview={preview} />
      </div>
      {error !== null && graph === undefined && <Failure error={error} retry={() => void refetch()} />}
      {drawing === undefined && error === null && <Loading what="the graph" />}
      {drawing && (drawing.tasks.size > DRAWN_MAX && !allDrawn
        ? <TooMany count={drawing.tasks.size} onDraw={() => setAllDrawn(true)} />
        : <ReactFlowProvider><Canvas drawing={drawing} preview={preview} stop={stop} unfold={unfold} /></ReactFlowProvider>)}
    </div>
  );
}

const hasFamilies = (families: Readonly<Record<string, readonly string[]>>): boolean => Object.values(families).some((those) => those.some((one) => one !== "root" && !isMapped(one)));

/** Of a run that has an end. */
const stopPoint = ({ points }: RunSummary): string | null => (points.to_come !== null ? points.final : null);

/** Nobody reads thousands of boxes, and to place them takes minutes. */
function TooMany({ count, onDraw }: { count: number; onDraw: () => void }) {
  const { views, toggleView } = useRunPage();
  return (
    <Empty title={`${count} tasks are too many to draw`}>
      Use the filter above (name, family or point), or reduce “within … edges”.
      <p>{!views.includes("table") && <Button look="primary" onClick={() => toggleView("table")}>Show the table</Button>} <Button onClick={onDraw}>Draw them anyway</Button></p>
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
