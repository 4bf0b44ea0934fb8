/** What one line of the tree says. */
import { isOfStages, shownId, stageName } from "../../api/shown";
import { endingOf } from "../../ui/endings";
import { FlowMarks } from "../../ui/FlowMark";
import { lookOf, TASK_STATES } from "../../ui/palette";
import { CountsBar } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { StateIcon, StateWord, stateStyle } from "../../ui/StateIcon";
import { At, Took } from "../../ui/time";
import type { Branch, Line } from "./tree";

export function TreeLine({ line, ticked }: { line: Line; ticked: boolean }) {
  const { of } = line;
  if (of.kind === "note") return <span className="muted">{of.text}</span>;
  if (of.kind === "task") {
    const { row } = of;
    return (
      <>
        <StateIcon state={row.state} size={15} />
        <span className="tree-name">{isOfStages() ? shownId(row.id) : row.name}{ticked && <b className="tick-mark" title="ticked"> ✓</b>}</span>
        <StateWord state={row.state} remarks={row.remarks} />
        {!isOfStages() && <FlowMarks flows={row.flows} />}
        {row.submit > 1 && <span className="muted tree-submits">{row.submit} submissions</span>}
        <span className="tree-end muted"><Took from={row.started_at} to={row.ended_at} /></span>
      </>
    );
  }
  if (of.kind === "attempt") {
    const one = of.try;
    const known = lookOf(one.status, "statuses").shape !== "·";
    return (
      <>
        <StateIcon state={known ? one.status : "failed"} kind="statuses" size={13} />
        <span className="tree-name">{one.text}</span>
        <span style={stateStyle(known ? one.status : "failed", "statuses")} className="try-status">{endingOf(one.status).word}</span>
        {one.exit_status !== null && <span className="muted">exit {one.exit_status}</span>}
        {one.worker && <span className="muted">{one.worker}</span>}
        {one.error && <span className="tree-error" title={plain(one.error)}>{plain(one.error)}</span>}
        <span className="tree-end muted"><At at={one.started_at} /> <Took from={one.started_at} to={one.ended_at} /></span>
      </>
    );
  }
  return <BranchLine branch={of} />;
}

function BranchLine({ branch }: { branch: Branch }) {
  const states = TASK_STATES.filter((state) => branch.counts[state]);
  return (
    <>
      <span className={branch.kind === "point" ? "tree-name mono" : "tree-name"}>{isOfStages() ? stageName(branch.name) : branch.name}</span>
      <span className="tree-counts">
        {states.map((state) => (
          <span key={state} className="tree-count" title={`${branch.counts[state]} ${state}`}>
            <StateIcon state={state} size={12} />{branch.counts[state]}<span className="visually-hidden"> {state}</span>
          </span>
        ))}
      </span>
      <span className="tree-end tree-bar"><CountsBar counts={branch.counts} total={branch.tasks} /></span>
    </>
  );
}
