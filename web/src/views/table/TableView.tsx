/** Every task as a row; only those on the screen are drawn, so thousands are as quick as ten. */
import { flexRender, getCoreRowModel, getSortedRowModel, useReactTable, type SortingState } from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef, useState, type KeyboardEvent } from "react";
import { useLive, useMayAct } from "../../api/runLive";
import { shownId, taskWord } from "../../api/shown";
import type { TaskRow } from "../../api/types";
import { rowFilter } from "../../pages/run/filters";
import { folded, foldState, foldText, useUnfolded, type Fold } from "../../pages/run/folds";
import { useTicks } from "../../pages/run/ticks";
import { needsAction, useOpenAt } from "../../pages/run/trouble";
import { useRunPage, useViewOption } from "../../pages/run/useRunPage";
import { Button, Empty } from "../../ui/parts";
import { countText, leftOutText } from "../../ui/quantities";
import { stepIn, useRoving } from "../../ui/roving";
import { ariaSort, SortHead, useTopAfter } from "../../ui/SortHead";
import { COLUMNS } from "./columns";
import "./table.css";

const ROW_HEIGHT = 33;

/** "-started_at" is the newest first. */
export function readSort(text: string): SortingState {
  return text === "" ? [] : [{ id: text.replace(/^-/, ""), desc: text.startsWith("-") }];
}

export function TableView() {
  const { rows, nodes, pointsLeftOut, stages } = useLive();
  const { filters, clearFilters } = useRunPage();
  const [sort, setSort] = useViewOption("table", "sort", "");
  const shown = useMemo(() => rows.filter(rowFilter(filters, (name) => nodes[name]?.families ?? [])), [rows, filters, nodes]);
  const { isUnfolded, unfold, foldAll } = useUnfolded("table");
  // Whoever looks for names or states wants to see each.
  const asked = filters.name !== "" || filters.states.length > 0;
  const { folds, lines } = useMemo(() => withFolds(shown, (name) => nodes[name]?.families ?? [], (id) => asked || isUnfolded(id)), [shown, nodes, asked, isUnfolded]);
  const sorting = useMemo(() => readSort(sort), [sort]);
  const table = useReactTable({
    data: lines,
    columns: COLUMNS,
    state: { sorting, columnVisibility: { point: !stages, flows: !stages } },
    getRowId: (row) => row.id,
    onSortingChange: (change) => {
      const [first] = typeof change === "function" ? change(sorting) : change;
      setSort(first === undefined ? "" : `${first.desc ? "-" : ""}${first.id}`);
    },
    getCoreRowModel: getCoreRowModel(),
    getSortedRowModel: getSortedRowModel(),
  });
  const ordered = table.getRowModel().rows;
  return (
    <div className="table-view">
      <div className="view-bar">
        <span className="muted">{shown.length === rows.length ? countText(rows.length, taskWord()) : `${shown.length} of ${countText(rows.length, taskWord())}`}{pointsLeftOut > 0 && `; ${leftOutText(pointsLeftOut)}`}</span>
        {foldAll !== null && <Button onClick={foldAll}>Fold again</Button>}
      </div>
      {shown.length === 0 ? (
        <Empty title={rows.length === 0 ? "No task has been created yet" : "No task matches the filters"}>
          {rows.length === 0 ? "Tasks appear when a scheduler starts the run." : <Button onClick={clearFilters}>Show all {rows.length}</Button>}
        </Empty>
      ) : (
        <Rows table={table} rows={ordered} sort={sort} folds={folds} unfold={unfold} />
      )}
    </div>
  );
}

type TableOf = ReturnType<typeof useReactTable<TaskRow>>;

/** The rows as they are shown: elements that are folded are one row, where the first of them was. */
export function withFolds(rows: readonly TaskRow[], familiesOf: (name: string) => readonly string[], isUnfolded: (id: string) => boolean): { folds: ReadonlyMap<string, Fold>; lines: TaskRow[] } {
  const { folds, foldOf } = folded(rows, familiesOf, isUnfolded, () => false);
  const told = new Set<string>();
  const lines = rows.flatMap((row): TaskRow[] => {
    const fold = folds.get(foldOf.get(row.id) ?? "");
    if (fold === undefined) return [row];
    if (told.has(fold.id)) return [];
    told.add(fold.id);
    return [{ ...row, id: fold.id, name: fold.name, state: foldState(fold), remarks: [foldText(fold)], submit: 0, queued_at: null, started_at: null, ended_at: null, exit_status: null, worker: null }];
  });
  return { folds, lines };
}

interface RowsProps {
  table: TableOf;
  rows: ReturnType<TableOf["getRowModel"]>["rows"];
  sort: string;
  folds: ReadonlyMap<string, Fold>;
  unfold: (id: string) => void;
}

function Rows({ table, rows, sort, folds, unfold }: RowsProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const { selected, select } = useRunPage();
  const { ticked, tick } = useTicks();
  const may = useMayAct();
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => scroller.current, estimateSize: () => ROW_HEIGHT, overscan: 12 });
  useOpenAt(virtual, rows.findIndex((row) => (selected === null ? needsAction(row.original) : row.id === selected)));
  useTopAfter(sort, virtual);
  const widths = `${may ? "34px " : ""}${table.getVisibleLeafColumns().map((one) => widthOf(Math.max(one.columnDef.minSize ?? 0, one.getSize() * 0.75), one.getSize())).join(" ")}`;
  const all = rows.length > 0 && rows.every((row) => ticked.has(row.id));
  const [at, setAt] = useAt(selected);
  const head = useRoving<HTMLDivElement>("[role=row]");
  const choose = (id: string) => {
    setAt(id);
    if (folds.has(id)) unfold(id);
    else select(id);
  };
  const place = rows.findIndex((row) => row.id === at);
  const hear = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey) return;
    const next = stepIn(event.key, place, rows.length);
    const here = rows[place];
    if (next !== null) {
      setAt(rows[next]?.id ?? null);
      virtual.scrollToIndex(next, { align: "auto" });
    } else if (event.key === "Enter" && here !== undefined) choose(here.id);
    else if (event.key === " " && here !== undefined && may) tick([here.id], !ticked.has(here.id));
    else return;
    event.preventDefault();
  };
  return (
    <div
      className="rows" ref={scroller} role="grid" aria-label="Tasks" aria-rowcount={rows.length} aria-multiselectable={may} tabIndex={0} onKeyDown={hear}
      {...(place >= 0 ? { "aria-activedescendant": rowId(rows[place]?.id ?? "") } : {})}
    >
      <div {...head} className="row head" role="row" style={{ gridTemplateColumns: widths }}>
        {may && <span role="columnheader"><input type="checkbox" data-stop tabIndex={-1} aria-label="Tick all that are shown" checked={all} onChange={() => tick(rows.map((row) => row.id), !all)} /></span>}
        {table.getFlatHeaders().map((header) => (
          <span key={header.id} role="columnheader" aria-sort={ariaSort(header.column.getIsSorted())}>
            <SortHead inGrid sorted={header.column.getIsSorted()} sort={header.column.getToggleSortingHandler() ?? (() => undefined)}>{flexRender(header.column.columnDef.header, header.getContext())}</SortHead>
          </span>
        ))}
      </div>
      <div className="rows-space" role="rowgroup" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index];
          if (row === undefined) return null;
          return (
            <div
              key={row.id} id={rowId(row.id)} data-task={row.id} role="row" aria-selected={row.id === selected} aria-rowindex={item.index + 1} className={row.id === at ? "row at" : "row"}
              style={{ gridTemplateColumns: widths, transform: `translateY(${item.start}px)` }}
              {...(folds.has(row.id) ? { title: "Click to see each element" } : {})}
              onClick={() => choose(row.id)}
            >
              {may && (
                <span role="gridcell" onClick={(event) => event.stopPropagation()}>
                  <input type="checkbox" tabIndex={-1} aria-label={`Tick ${shownId(row.id)}`} checked={ticked.has(row.id)} onChange={(event) => tick([row.id], event.target.checked)} />
                </span>
              )}
              {row.getVisibleCells().map((cell) => <span key={cell.id} role="gridcell">{flexRender(cell.column.columnDef.cell, cell.getContext())}</span>)}
            </div>
          );
        })}
      </div>
    </div>
  );
}

const PHONE_SHARE = 0.22; // of a pixel's worth: point, name and state fit beside each other on 390 pixels
const widthOf = (least: number, share: number): string => `minmax(min(${least}px, ${least * PHONE_SHARE}vw), ${share}fr)`;

const rowId = (id: string): string => `row-${id.replaceAll(" ", "_")}`;

/** The row that keys are about: where arrows led to, or what was selected since, here or elsewhere. */
function useAt(selected: string | null): [string | null, (id: string | null) => void] {
  const [at, setAt] = useState(selected);
  const [seen, setSeen] = useState(selected);
  if (seen !== selected) {
    setSeen(selected);
    if (selected !== null) setAt(selected);
  }
  return [at, setAt];
}
