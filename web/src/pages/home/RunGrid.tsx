/**
 * Runs by points: a row for each run, a cell for each point, the newest at the right.
 *
 * Points of different workflows are different times, so a row has its own, with what several
 * share (the day, the month, the year) above the first of these.
 */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { memo, type CSSProperties, type KeyboardEvent } from "react";
import { causeQuery } from "../../api/queries";
import { shownId } from "../../api/shown";
import type { GridCell, GridRun } from "../../api/types";
import { plain } from "../../ui/plain";
import { useRoving } from "../../ui/roving";
import { StateIcon, stateStyle } from "../../ui/StateIcon";
import { Ago } from "../../ui/time";
import { causeOf, isAbandoned, isGivenUp } from "../runOrder";
import { RunStatus } from "../RunStatus";
import { cellCount, cellState, cellText, lateText, needsAction, pointFilter, pointLabels, type PointLabel } from "./cells";
import { StallAge } from "./StallAge";

const TOLD_MAX = 12; // rows that say what the job wrote; those that need action come first

export function RunGrid({ runs, wall }: { runs: readonly GridRun[]; wall: boolean }) {
  const roving = useRoving<HTMLDivElement>("[role=row]", "right");
  return (
    <div {...roving} className={wall ? "run-grid wall" : "run-grid"} role="grid" aria-label="Runs by cycle point" aria-rowcount={runs.length}>
      {runs.map((run, place) => <Row key={run.number} run={run} first={place === 0} told={place < TOLD_MAX} />)}
    </div>
  );
}

const Row = memo(function Row({ run, first, told }: { run: GridRun; first: boolean; told: boolean }) {
  const labels = pointLabels(run.stages ? [] : run.cells.map(({ point }) => point));
  const hasHeadings = labels.some(({ heading }) => heading !== "");
  return (
    <div role="row" className={needsAction(run) || isAbandoned(run) ? "grid-row alarm" : "grid-row"}>
      <div role="rowheader" className="grid-head">
        <span className="grid-name">
          <Link to="/runs/$run" params={{ run: run.name }} data-stop tabIndex={first ? 0 : -1}>{plain(run.name)}</Link>
          <RunStatus run={run} />
        </span>
        <span className="grid-when muted">{run.since !== null ? <><StallAge status={run.status} since={run.since} />{isGivenUp(run) && " · no scheduler"}</> : <>changed <Ago at={run.updated_at} /></>}{lateText(run) !== "" && <span className={run.late === undefined ? "grid-due" : "grid-due late"}>{lateText(run)}</span>}</span>
        <Why run={run} told={told} />
      </div>
      <div className="grid-cells" role="none">
        {run.cells.length === 0 && <RunCell run={run} />}
        {run.cells.map((cell, place) => <Cell key={cell.point} run={run.name} stages={run.stages} cell={cell} {...(labels[place] ?? NO_LABEL)} hasHeadings={hasHeadings} />)}
      </div>
    </div>
  );
});

/** `told`: with what the job wrote, for which the run is looked into. */
function Why({ run, told }: { run: GridRun; told: boolean }) {
  const { data } = useQuery({ ...causeQuery(run.name, run.updated_at), enabled: told && needsAction(run) && !isAbandoned(run) });
  if (isAbandoned(run)) return <span className="grid-why">No scheduler drives this run: open it to continue it.</span>;
  const known = data === undefined ? null : causeOf(data);
  if (needsAction(run) && known !== null) {
    const text = plain(known.title + known.text);
    return (
      <span className="grid-why" title={text}>
        <Link to="/runs/$run" params={{ run: run.name }} search={{ select: known.id }} data-stop tabIndex={-1}>{plain(run.stages ? shownId(known.title) : known.title)}</Link>{plain(known.text)}
      </span>
    );
  }
  if (run.cause !== null) {
    return (
      <span className="grid-why">
        <Link to="/runs/$run" params={{ run: run.name }} search={{ select: run.cause.id }} data-stop tabIndex={-1}>{plain(run.stages ? shownId(run.cause.id) : run.cause.id)}</Link>{" "}
        {run.cause.state}{run.cause.more > 0 ? `, and ${run.cause.more} more` : ""}
      </span>
    );
  }
  const says = run.status === "error" || run.status === "stopped" || run.reason.startsWith("completed, ");
  return says && run.reason !== run.status ? <span className="grid-why quiet">{plain(run.reason)}</span> : null;
}

/** A run that shows no points, as it has not begun. */
function RunCell({ run }: { run: GridRun }) {
  const navigate = useNavigate();
  const open = () => void navigate({ to: "/runs/$run", params: { run: run.name } });
  const text = `${run.name}: ${run.status}`;
  return (
    <div role="gridcell" className="grid-cell" data-stop tabIndex={-1} style={stateStyle(run.status, "runs")} aria-label={plain(text)} title={plain(text)} onClick={open} onKeyDown={onEnter(open)}>
      <span className="cell-box"><StateIcon state={run.status} kind="runs" size={14} /></span>
    </div>
  );
}

const NO_LABEL: PointLabel = { heading: "", short: "", letters: 0 };
type CellProps = PointLabel & { run: string; stages: boolean; cell: GridCell; hasHeadings: boolean };

const Cell = memo(function Cell({ run, stages, cell, heading, short, letters, hasHeadings }: CellProps) {
  const navigate = useNavigate();
  const state = cellState(cell);
  const text = plain(cellText(cell, stages));
  const open = () => void navigate({ to: "/runs/$run", params: { run }, search: stages ? {} : { point: pointFilter(cell.point) } });
  return (
    <div role="gridcell" className={cell.incomplete > 0 ? "grid-cell alarm" : "grid-cell"} data-stop data-state={state} tabIndex={-1} style={{ ...stateStyle(state), "--letters": letters } as CSSProperties} title={text} onClick={open} onKeyDown={onEnter(open)}>
      <span className="visually-hidden">{`${plain(run)} ${text}`}</span>
      {hasHeadings && <span className="cell-day" aria-hidden>{heading}</span>}
      <span className={cell.late !== undefined ? "cell-box late" : cell.due !== undefined ? "cell-box due" : "cell-box"} aria-hidden><StateIcon state={state} size={14} /><b>{shortCount(cellCount(cell))}</b></span>
      <span className="cell-point" aria-hidden>{plain(short)}</span>
    </div>
  );
});

const onEnter = (open: () => void) => (event: KeyboardEvent) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  open();
};

const shortCount = (count: number): string => (count < 1_000 ? `${count}` : `${Math.floor(count / 1_000)}k`);
