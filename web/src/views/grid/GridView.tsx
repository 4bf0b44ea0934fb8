/**
 * Tasks by points, families folded. Only the squares on the screen are drawn, so ten thousand are as quick as ten.
 *
 * The grid is one stop of Tab; arrows lead from square to square, Enter opens a task or a family, Space ticks (WAI-ARIA: grid).
 */
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { useLive, useMayAct } from "../../api/runLive";
import { taskWord } from "../../api/shown";
import { rowFilter } from "../../pages/run/filters";
import { useTicks } from "../../pages/run/ticks";
import { useRunPage, useViewOption } from "../../pages/run/useRunPage";
import { Button, Empty } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { sharedPoint, shortPoint } from "../../ui/points";
import { countText, leftOutText } from "../../ui/quantities";
import { StateIcon, stateStyle } from "../../ui/StateIcon";
import { placeAfter, squareText, taskGrid, type GridLine, type Place, type Square, type TaskGrid } from "./grid";
import "./grid.css";

const LINE_HEIGHT = 28;
const COLUMN_WIDTH = 38;
const NAME_WIDTH = 210; // as grid.css has it
const PAGE = 10; // lines

export function GridView() {
  const { rows, nodes, pointsLeftOut } = useLive();
  const { filters, clearFilters } = useRunPage();
  const [toggled, setToggled] = useViewOption("grid", "toggled", "");
  const names = useMemo(() => new Set(toggled.split(",").filter(Boolean)), [toggled]);
  const shown = useMemo(() => rows.filter(rowFilter(filters, (name) => nodes[name]?.families ?? [])), [rows, filters, nodes]);
  const grid = useMemo(() => taskGrid(shown, (name) => nodes[name]?.families ?? [], (family) => names.has(family)), [shown, nodes, names]);
  const toggle = (family: string) => setToggled([...names].filter((one) => one !== family).concat(names.has(family) ? [] : [family]).join(","));
  return (
    <div className="matrix-view">
      <div className="view-bar">
        <span className="muted">{countText(grid.points.length, "point")}, {countText(shown.length, taskWord())}{pointsLeftOut > 0 && `; ${leftOutText(pointsLeftOut)}`}</span>
        <Button look="quiet" disabled={names.size === 0} onClick={() => setToggled("")} title="Fold only families with ten or more tasks">Reset</Button>
      </div>
      {shown.length === 0 ? (
        <Empty title={rows.length === 0 ? "No task has been created yet" : "No task matches the filters"}>
          {rows.length === 0 ? "Tasks appear when a scheduler starts the run." : <Button onClick={clearFilters}>Show all {rows.length}</Button>}
        </Empty>
      ) : <Squares grid={grid} toggle={toggle} />}
    </div>
  );
}

/** What needs action first of all, else the newest point. */
function startOf({ points, lines }: TaskGrid): Place {
  for (const [place, line] of lines.entries()) {
    const column = points.findIndex((point) => line.squares.get(point)?.alarm === true);
    if (column >= 0) return { line: place, column };
  }
  return { line: 0, column: points.length - 1 };
}

function Squares({ grid, toggle }: { grid: TaskGrid; toggle: (family: string) => void }) {
  const { points, lines } = grid;
  const { selected, select } = useRunPage();
  const { ticked, tick } = useTicks();
  const may = useMayAct();
  const scroller = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState<Place>(() => startOf(grid));
  const across = useMemo(() => sharedPoint(points), [points]);
  const down = useVirtualizer({ count: lines.length, getScrollElement: () => scroller.current, estimateSize: () => LINE_HEIGHT, overscan: 12 });
  const right = useVirtualizer({ horizontal: true, count: points.length, getScrollElement: () => scroller.current, estimateSize: () => COLUMN_WIDTH, overscan: 6, paddingStart: NAME_WIDTH, scrollPaddingStart: NAME_WIDTH });
  const show = (to: Place) => {
    down.scrollToIndex(to.line, { align: "auto" });
    right.scrollToIndex(to.column, { align: "auto" });
  };
  useEffect(() => show(place), []); // eslint-disable-line react-hooks/exhaustive-deps -- once: afterwards it stays where it was put
  const here = { line: Math.min(place.line, lines.length - 1), column: Math.min(place.column, points.length - 1) };
  const open = (line: GridLine | undefined, point: string | undefined) => {
    if (line?.kind === "family") toggle(line.name);
    else select(line?.squares.get(point ?? "")?.id ?? null);
  };
  const hear = (event: KeyboardEvent) => {
    const line = lines[here.line];
    const id = line?.squares.get(points[here.column] ?? "")?.id ?? null;
    const next = placeAfter(event.key, event.ctrlKey, here, lines.length, points.length, PAGE);
    if (next !== null) {
      setPlace(next);
      show(next);
    } else if (event.key === "Enter") open(line, points[here.column]);
    else if (event.key === " " && may && id !== null) tick([id], !ticked.has(id));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const columns = right.getVirtualItems();
  return (
    <div className="matrix" ref={scroller} role="grid" aria-label="Tasks by cycle point" aria-rowcount={lines.length + 1} aria-colcount={points.length + 1} tabIndex={0} onKeyDown={hear} aria-activedescendant={squareId(here)}>
      <div className="matrix-head" role="row" style={{ width: right.getTotalSize() }}>
        <span role="columnheader" className="matrix-name">{points.length > 1 ? "Task" : ""}</span>
        {columns.map(({ index, start }) => <span key={index} role="columnheader" aria-colindex={index + 2} className="matrix-point" style={{ left: start }} title={plain(points[index] ?? "")}><span>{plain(shortPoint(points[index] ?? "", across))}</span></span>)}
      </div>
      <div role="presentation" className="matrix-space" style={{ height: down.getTotalSize(), width: right.getTotalSize() }}>
        {down.getVirtualItems().map(({ index, start }) => {
          const line = lines[index];
          if (line === undefined) return null;
          return (
            <div key={`${line.kind} ${line.name}`} role="row" aria-rowindex={index + 2} className={`matrix-line ${line.kind}`} style={{ transform: `translateY(${start}px)`, width: right.getTotalSize() }}>
              <LineName line={line} toggle={toggle} />
              {columns.map(({ index: column, start: left }) => {
                const point = points[column] ?? "";
                const square = line.squares.get(point);
                const id = square?.id ?? null;
                const marks = `${here.line === index && here.column === column ? " active" : ""}${id !== null && id === selected ? " selected" : ""}${id !== null && ticked.has(id) ? " ticked" : ""}`;
                return <SquareBox key={column} id={squareId({ line: index, column })} column={column + 2} left={left} marks={marks} text={squareText(line, point, square)} square={square} onClick={() => { setPlace({ line: index, column }); open(line, point); }} />;
              })}
            </div>
          );
        })}
      </div>
    </div>
  );
}

const squareId = ({ line, column }: Place): string => `square-${line}-${column}`;

function LineName({ line, toggle }: { line: GridLine; toggle: (family: string) => void }) {
  if (line.kind === "task") return <span role="rowheader" className={line.within ? "matrix-name within" : "matrix-name"} title={plain(line.name)}>{plain(line.name)}</span>;
  return (
    <span role="rowheader" className="matrix-name">
      <button type="button" className="link" tabIndex={-1} aria-expanded={line.open} title={`${plain(line.name)}: ${countText(line.members, "task")}`} onClick={() => toggle(line.name)}><i aria-hidden>{line.open ? "▾" : "▸"}</i> {plain(line.name)} <small>{line.members}</small></button>
    </span>
  );
}

interface SquareProps {
  id: string;
  column: number;
  left: number;
  marks: string;
  text: string;
  square: Square | undefined;
  onClick: () => void;
}

const SquareBox = memo(
  function SquareBox({ id, column, left, marks, text, square, onClick }: SquareProps) {
    const count = square?.id === null ? (square.counts[square.state] ?? 0) : 0;
    return (
      <span id={id} role="gridcell" aria-colindex={column} aria-label={plain(text)} title={plain(text)} className={`matrix-square${square === undefined ? " none" : ""}${square?.alarm ? " alarm" : ""}${marks}`} style={{ left, ...(square === undefined ? {} : stateStyle(square.state)) }} onClick={onClick}>
        {square !== undefined && <StateIcon state={square.state} size={count < 100 ? 15 : 11} />}
        {count > 1 && <small aria-hidden>{count < 1_000 ? count : `${Math.floor(count / 1_000)}k`}</small>}
      </span>
    );
  },
  (before, now) => before.id === now.id && before.left === now.left && before.marks === now.marks && before.text === now.text && before.square?.alarm === now.square?.alarm,
);
