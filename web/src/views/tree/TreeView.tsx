/** The run as a tree: point, family, task, attempt; only the lines on the screen are drawn. */
import { useQueries } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState, type CSSProperties, type KeyboardEvent } from "react";
import { taskQuery } from "../../api/queries";
import { useLive, useMayAct } from "../../api/runLive";
import { isOfStages, taskWord } from "../../api/shown";
import { rowFilter } from "../../pages/run/filters";
import { useTicks } from "../../pages/run/ticks";
import { needsAction, useOpenAt } from "../../pages/run/trouble";
import { useRunPage } from "../../pages/run/useRunPage";
import { Button, Empty } from "../../ui/parts";
import { countText, leftOutText } from "../../ui/quantities";
import { TreeLine } from "./TreeLine";
import { flatten, growTree, isOpenByItself, stepOf, triesOf, type Branch, type Leaf, type Line } from "./tree";
import "./tree.css";

const LINE_HEIGHT = 28;
const NOTHING: ReadonlyMap<string, boolean> = new Map();

export function TreeView() {
  const { rows, nodes, pointsLeftOut, stages } = useLive();
  const { filters, clearFilters } = useRunPage();
  const [said, setSaid] = useState(NOTHING); // what somebody opened or closed
  const shown = useMemo(() => rows.filter(rowFilter(filters, (name) => nodes[name]?.families ?? [])), [rows, filters, nodes]);
  const points = useMemo(() => growTree(shown, nodes), [shown, nodes]);
  const tree = useMemo(() => (stages ? points.flatMap((point) => point.children) : points), [points, stages]);
  const isOpen = (item: Branch | Leaf) => said.get(item.key) ?? isOpenByItself(item);
  const tries = useTries(said);
  const lines = useMemo(() => flatten(tree, isOpen, (id) => tries.get(id) ?? null), [tree, said, tries]); // eslint-disable-line react-hooks/exhaustive-deps -- isOpen follows from said
  const all = (open: boolean) => setSaid(new Map(branches(tree).map((item) => [item.key, open])));
  return (
    <div className="tree-view">
      <div className="view-bar">
        <Button look="quiet" onClick={() => all(true)}>Open all</Button>
        <Button look="quiet" onClick={() => all(false)}>Close all</Button>
        <Button look="quiet" disabled={said.size === 0} onClick={() => setSaid(NOTHING)} title="Open only points with tasks that have not ended, or have failed">Reset</Button>
        <span className="muted">{!stages && `${countText(points.length, "point")}, `}{countText(shown.length, taskWord())}{pointsLeftOut > 0 && `; ${leftOutText(pointsLeftOut)}`}</span>
      </div>
      {lines.length === 0 ? (
        <Empty title={rows.length === 0 ? "No task has been created yet" : "No task matches the filters"}>
          {rows.length === 0 ? "Tasks appear when a scheduler starts the run." : <Button onClick={clearFilters}>Show all {rows.length}</Button>}
        </Empty>
      ) : (
        <Lines lines={lines} toggle={(line) => setSaid(new Map(said).set(line.key, line.open === false))} />
      )}
    </div>
  );
}

function branches(tree: readonly (Branch | Leaf)[]): Branch[] {
  return tree.flatMap((one) => (one.kind === "task" ? [] : [one, ...branches(one.children)]));
}

/** The attempts of tasks that are open; their documents follow the run. */
function useTries(said: ReadonlyMap<string, boolean>) {
  const { run } = useRunPage();
  const ids = [...said].flatMap(([key, open]) => (open && key.startsWith("task ") ? [key.slice(5)] : []));
  return useQueries({
    queries: ids.map((id) => taskQuery(run, id)),
    combine: (found) => new Map(found.flatMap(({ data }) => (data ? [[data.id, triesOf(data.submissions)] as const] : []))),
  });
}

function Lines({ lines, toggle }: { lines: readonly Line[]; toggle: (line: Line) => void }) {
  const scroller = useRef<HTMLDivElement>(null);
  const { selected, select } = useRunPage();
  const { ticked, tick } = useTicks();
  const may = useMayAct();
  const [active, setActive] = useState<string | null>(selected === null ? null : `task ${selected}`);
  const [seen, setSeen] = useState(selected);
  if (seen !== selected) {
    setSeen(selected);
    const isThere = selected === null || active === `task ${selected}` || active?.startsWith(`task ${selected} `);
    if (!isThere) setActive(`task ${selected}`); // it was selected elsewhere
  }
  const virtual = useVirtualizer({ count: lines.length, getScrollElement: () => scroller.current, estimateSize: () => LINE_HEIGHT, overscan: 15 });
  useOpenAt(virtual, lines.findIndex((line) => line.of.kind === "task" && needsAction(line.of.row)), selected === null);
  const byKey = useMemo(() => new Map(lines.map((line, place) => [line.key, place])), [lines]);
  const choose = (line: Line | undefined) => {
    if (line === undefined) return;
    setActive(line.key);
    if (line.of.kind === "task") select(line.of.row.id);
    else if (line.of.kind === "attempt") select(line.of.task.id);
    else if (line.open !== null) toggle(line);
  };
  useEffect(() => {
    const place = selected === null ? undefined : byKey.get(`task ${selected}`);
    if (place !== undefined) virtual.scrollToIndex(place, { align: "auto" });
  }, [selected]); // eslint-disable-line react-hooks/exhaustive-deps -- only what was selected just now is brought into sight
  const hear = (event: KeyboardEvent) => {
    const here = active === null ? undefined : lines[byKey.get(active) ?? -1];
    if (event.ctrlKey || event.metaKey) return;
    if (event.key === "Enter") choose(here);
    else if (event.key === " " && here?.of.kind === "task" && may) tick([here.of.row.id], !ticked.has(here.of.row.id));
    else {
      const step = stepOf(event.key, lines, here === undefined ? null : active);
      if (step === null) return;
      if ("toggle" in step) toggle(lines[byKey.get(step.toggle) ?? 0] as Line);
      else {
        setActive(step.active);
        virtual.scrollToIndex(byKey.get(step.active) ?? 0, { align: "auto" });
      }
    }
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      className="tree-lines" ref={scroller} role="tree" aria-label={isOfStages() ? "Stages" : "Tasks by point and family"} tabIndex={0} onKeyDown={hear} aria-multiselectable={may}
      {...(active !== null && byKey.has(active) ? { "aria-activedescendant": lineId(active) } : {})}
    >
      <div role="presentation" className="tree-space" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const line = lines[item.index];
          if (line === undefined) return null;
          const id = line.of.kind === "task" ? line.of.row.id : null;
          return (
            <div
              key={line.key} id={lineId(line.key)} {...(taskOf(line) === null ? {} : { "data-task": taskOf(line) })} role="treeitem" aria-level={line.depth + 1} className={`tree-line ${line.of.kind}${line.key === active ? " active" : ""}`}
              aria-selected={id !== null && (id === selected || ticked.has(id))} {...(line.open === null ? {} : { "aria-expanded": line.open })}
              style={{ transform: `translateY(${item.start}px)`, "--depth": line.depth } as CSSProperties}
              onClick={() => choose(line)}
            >
              <span className="twig" aria-hidden onClick={(event) => { event.stopPropagation(); if (line.open !== null) toggle(line); }}>{line.open === null ? "" : line.open ? "▾" : "▸"}</span>
              <TreeLine line={line} ticked={id !== null && ticked.has(id)} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** The task that keys at a line are about. */
const taskOf = ({ of }: Line): string | null => (of.kind === "task" ? of.row.id : of.kind === "attempt" ? of.task.id : null);
const lineId = (key: string): string => `tree-${key.replaceAll(" ", "_")}`;
