/**
 * Runs by points: a row for each run, a cell for each point, the newest at the right.
 *
 * Points of different workflows are different times, so a row has its own, with the day above the
 * first of each. One element of the grid can be reached by Tab; arrows go from there (WAI-ARIA).
 */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { memo, useCallback, useRef, type KeyboardEvent } from "react";
import { causeQuery } from "../../api/queries";
import { shownId } from "../../api/shown";
import type { GridCell, GridRun } from "../../api/types";
import { plain } from "../../ui/plain";
import { StateIcon, stateStyle, StateWord } from "../../ui/StateIcon";
import { Ago } from "../../ui/time";
import { causeOf, isAbandoned } from "../runOrder";
import { cellCount, cellState, cellText, headings, needsAction, pointFilter, shortPoint } from "./cells";
import { StallAge } from "./StallAge";

const TOLD_MAX = 12; // rows that say what the job wrote; those that need action come first
const STOP = "[data-stop]"; // what arrows stop at

export function RunGrid({ runs, wall }: { runs: readonly GridRun[]; wall: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const move = useCallback((event: KeyboardEvent) => {
    const next = box.current === null ? null : neighbour(box.current, event);
    if (next === null) return;
    event.preventDefault();
    focusOn(next);
  }, []);
  return (
    <div ref={box} className={wall ? "run-grid wall" : "run-grid"} role="grid" aria-label="Runs by cycle point" aria-rowcount={runs.length} onKeyDown={move} onFocus={(event) => makeStop(box.current, event.target)}>
      {runs.map((run, place) => <Row key={run.number} run={run} first={place === 0} told={place < TOLD_MAX} />)}
    </div>
  );
}

function focusOn(one: HTMLElement): void {
  one.focus();
  one.scrollIntoView({ block: "nearest", inline: "nearest" });
}

/** Tab comes back to where one was. */
function makeStop(box: HTMLElement | null, one: EventTarget): void {
  if (box === null || !(one instanceof HTMLElement) || !one.matches(STOP)) return;
  box.querySelectorAll<HTMLElement>(`${STOP}[tabindex="0"]`).forEach((old) => { old.tabIndex = -1; });
  one.tabIndex = 0;
}

/** Where an arrow leads to; in another row to what is as far from its right end. */
function neighbour(box: HTMLElement, event: KeyboardEvent): HTMLElement | null {
  const rows = [...box.querySelectorAll<HTMLElement>("[role=row]")];
  const row = rows.findIndex((one) => one.contains(event.target as Node));
  const stops = (place: number) => [...(rows[place]?.querySelectorAll<HTMLElement>(STOP) ?? [])];
  const here = stops(row);
  const column = here.indexOf(event.target as HTMLElement);
  if (row < 0 || column < 0) return null;
  const beside = (place: number) => {
    const found = stops(place);
    const isLink = here[column]?.tagName === "A";
    return (isLink ? found[0] : found[Math.max(0, found.length - (here.length - column))]) ?? null;
  };
  switch (event.key) {
    case "ArrowRight": return here[column + 1] ?? null;
    case "ArrowLeft": return here[column - 1] ?? null;
    case "ArrowDown": return beside(row + 1);
    case "ArrowUp": return beside(row - 1);
    case "Home": return (event.ctrlKey ? stops(0) : here)[0] ?? null;
    case "End": return (event.ctrlKey ? stops(rows.length - 1) : here).at(-1) ?? null;
    default: return null;
  }
}

const Row = memo(function Row({ run, first, told }: { run: GridRun; first: boolean; told: boolean }) {
  const days = headings(run.cells);
  const hasDays = days.some((day) => day !== "");
  return (
    <div role="row" className={needsAction(run) || isAbandoned(run) ? "grid-row alarm" : "grid-row"}>
      <div role="rowheader" className="grid-head">
        <span className="grid-name">
          <Link to="/runs/$run" params={{ run: run.name }} data-stop tabIndex={first ? 0 : -1}>{plain(run.name)}</Link>
          <StateWord state={run.status} kind="runs" />
        </span>
        <span className="grid-when muted">{run.since !== null ? <StallAge status={run.status} since={run.since} /> : <>changed <Ago at={run.updated_at} /></>}</span>
        <Why run={run} told={told} />
      </div>
      <div className="grid-cells" role="none">
        {run.cells.length === 0 && <RunCell run={run} />}
        {run.cells.map((cell, place) => <Cell key={cell.point} run={run.name} stages={run.stages} cell={cell} day={hasDays ? (days[place] ?? "") : null} />)}
      </div>
    </div>
  );
});

/** `told`: with what the job wrote, for which the run is looked into. */
function Why({ run, told }: { run: GridRun; told: boolean }) {
  const { data } = useQuery({ ...causeQuery(run.name, run.updated_at), enabled: told && run.cause !== null && !isAbandoned(run) });
  if (isAbandoned(run)) return <span className="grid-why">No scheduler drives it: open it to resume it.</span>;
  const known = data === undefined ? null : causeOf(data);
  if (run.cause !== null && known !== null) {
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

const Cell = memo(function Cell({ run, stages, cell, day }: { run: string; stages: boolean; cell: GridCell; day: string | null }) {
  const navigate = useNavigate();
  const state = cellState(cell);
  const text = plain(cellText(cell, stages));
  const open = () => void navigate({ to: "/runs/$run", params: { run }, search: stages ? {} : { point: pointFilter(cell.point) } });
  return (
    <div role="gridcell" className={cell.incomplete > 0 ? "grid-cell alarm" : "grid-cell"} data-stop data-state={state} tabIndex={-1} style={stateStyle(state)} title={text} onClick={open} onKeyDown={onEnter(open)}>
      <span className="visually-hidden">{`${plain(run)} ${text}`}</span>
      {day !== null && <span className="cell-day" aria-hidden>{day}</span>}
      <span className="cell-box" aria-hidden><StateIcon state={state} size={14} /><b>{shortCount(cellCount(cell))}</b></span>
      <span className="cell-point" aria-hidden>{stages ? "" : plain(shortPoint(cell.point).short)}</span>
    </div>
  );
});

const onEnter = (open: () => void) => (event: KeyboardEvent) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  open();
};

const shortCount = (count: number): string => (count < 1_000 ? `${count}` : `${Math.floor(count / 1_000)}k`);
