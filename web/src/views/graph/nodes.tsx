/** How a task, a group, a bunch and a frame look in the graph. */
import type { Node, NodeProps } from "@xyflow/react";
import { memo } from "react";
import { useTaskRow, useTouched } from "../../api/runLive";
import { isOfStages, pointsAround, shownId } from "../../api/shown";
import type { GraphGroup, TaskWords } from "../../api/types";
import { foldState, foldText, type Fold } from "../../pages/run/folds";
import { useTicks } from "../../pages/run/ticks";
import { flowClass, FlowMark, laterFlows } from "../../ui/FlowMark";
import { shortPoint } from "../../ui/points";
import { StateIcon, stateStyle } from "../../ui/StateIcon";
import { groupText } from "./drawing";
import { headAndTail } from "./legible";
import type { Mark } from "./preview";

/** `framed`: its point stands above it already. */
export type TaskNode = Node<{ task: TaskWords & { distance: number }; framed: boolean; selected: boolean; beside: boolean; faded: boolean; mark?: Mark }, "task">;
/** Not of type "group": React Flow dresses that one itself. */
export type GroupNode = Node<{ group: GraphGroup }, "family">;
export type FrameNode = Node<{ name: string; depth: number; stop: boolean; until: boolean; picking: boolean }, "frame">;
export type BunchNode = Node<{ text: string; counts: string; head: number }, "bunch">;
export type FoldNode = Node<{ fold: Fold }, "fold">;
export type GraphNode = TaskNode | GroupNode | FrameNode | BunchNode | FoldNode;

/** Drawn again only when this task changes: the live row counts more than the document. */
export const TaskBox = memo(function TaskBox({ id, data }: NodeProps<TaskNode>) {
  const live = useTaskRow(id);
  const touched = useTouched(id);
  const { ticked } = useTicks();
  const { task, framed, selected, beside, faded, mark } = data;
  const { state, remarks, flows, in_pool } = live ?? task;
  const classes = ["task-box", in_pool ? "pooled" : "", selected ? "selected" : "", beside ? "beside" : "", faded ? "faded" : "", ticked.has(id) ? "ticked" : "", `s-${state.replace(" ", "-")}`, touched ? "touched" : "", mark ? markClass(mark) : ""];
  const stages = isOfStages();
  const [later] = stages ? [] : laterFlows(flows).slice(-1);
  return (
    <div className={classes.filter(Boolean).join(" ")} style={stateStyle(state)} title={`${shownId(id)}: ${[state, ...remarks].join(", ")}${later !== undefined ? `; flow ${flows.join(", ")}` : ""}`}>
      <StateIcon state={state} size={18} />
      <span className="task-text"><Name text={stages ? shownId(id) : task.name} /><small>{[...(stages ? [state] : framed && remarks.length > 0 ? [] : [shortPoint(task.point, framed ? task.point : pointsAround())]), ...(remarks.length > 0 ? [remarks.join(", ")] : [])].join(" · ")}</small></span>
      {later !== undefined && <><i className={`flow-edge ${flowClass(later)}`} /><span className="flow-marks">{laterFlows(flows).map((flow) => <FlowMark key={flow} flow={flow} />)}</span></>}
      {mark && <MarkBadge mark={mark} />}
    </div>
  );
});

function Name({ text }: { text: string }) {
  const [head, tail] = headAndTail(text);
  return <b>{head !== "" && <span>{head}</span>}<span className="tail">{tail}</span></b>;
}

const markClass = (mark: Mark): string => (mark.ends ? "will-end" : mark.order !== null ? "will-run" : mark.waits ? "will-wait" : "named");

function MarkBadge({ mark }: { mark: Mark }) {
  return (
    <span className="mark-badges">
      {mark.order !== null && <b className="order-mark">{mark.order}</b>}
      {mark.waits && <b className="order-mark waits">…</b>}
      {mark.ends && <b className="order-mark ends">⊣</b>}
    </span>
  );
}

export const GroupBox = memo(function GroupBox({ data: { group } }: NodeProps<GroupNode>) {
  return <div className="group-box" title={`Needs ${group.every ? "all" : "any"} of ${group.family}: ${group.output}`}>{groupText(group)}</div>;
});

/** The elements of a mapped task, as one. */
export const FoldBox = memo(function FoldBox({ id, data: { fold } }: NodeProps<FoldNode>) {
  const { ticked } = useTicks();
  const state = foldState(fold);
  return (
    <div className={`task-box fold-box${ticked.has(id) ? " ticked" : ""} s-${state.replace(" ", "-")}`} style={stateStyle(state)} title={`${shownId(id)}: ${foldText(fold)}. Click to see each`}>
      <StateIcon state={state} size={18} />
      <span className="task-text"><Name text={isOfStages() ? shownId(id) : fold.name} /><small>{foldText(fold)}</small></span>
    </div>
  );
});

/** Tasks that stand alike, in rows and columns. */
export const BunchBox = memo(function BunchBox({ data }: NodeProps<BunchNode>) {
  return <div className="bunch-box" title="These tasks have the same dependencies: a line to or from this group stands for one line to or from each task"><span style={{ bottom: `calc(100% - ${data.head}px)` }}>{data.text}{data.counts !== "" && <i> · {data.counts}</i>}</span></div>;
});

export const FrameBox = memo(function FrameBox({ data }: NodeProps<FrameNode>) {
  const { name, depth, stop, until, picking } = data;
  return (
    <div className={`frame-box depth-${Math.min(depth, 3)}${picking ? " picking" : ""}${until ? " until" : ""}`}>
      <span>{name}{stop && <em className="stop-word" title="The run stops after this point">stop point</em>}{until && <em className="until-word">the flow ends after this point</em>}</span>
    </div>
  );
});
