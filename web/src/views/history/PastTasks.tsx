/** Every task that was known then, by point; those that the batch touched are marked. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef } from "react";
import type { PastDocument } from "../../api/past";
import { shownId } from "../../api/shown";
import type { TaskRow } from "../../api/types";
import { rowFilter } from "../../pages/run/filters";
import { useRunPage, useViewOption } from "../../pages/run/useRunPage";
import { CountsBar, Empty } from "../../ui/parts";
import { leftOutText } from "../../ui/quantities";
import { StateWord } from "../../ui/StateIcon";
import { touchedBy } from "./happenings";

type Line = { kind: "point"; point: string; counts: Record<string, number>; total: number } | { kind: "task"; task: TaskRow };

/** A point, then its tasks: those of the pool first. */
export function linesOf(tasks: readonly TaskRow[]): Line[] {
  const points = new Map<string, TaskRow[]>();
  for (const task of tasks) {
    const there = points.get(task.point);
    if (there) there.push(task);
    else points.set(task.point, [task]);
  }
  return [...points].reverse().flatMap(([point, there]): Line[] => {
    const counts: Record<string, number> = {};
    for (const { state } of there) counts[state] = (counts[state] ?? 0) + 1;
    const inOrder = [...there.filter((task) => task.in_pool), ...there.filter((task) => !task.in_pool)];
    return [{ kind: "point", point, counts, total: there.length }, ...inOrder.map((task): Line => ({ kind: "task", task }))];
  });
}

export function PastTasks({ past }: { past: PastDocument }) {
  const { filters, selected, select } = useRunPage();
  const [show, setShow] = useViewOption("history", "show", "all");
  const scroller = useRef<HTMLDivElement>(null);
  const touched = useMemo(() => touchedBy(past), [past]);
  const lines = useMemo(() => {
    const fits = rowFilter(filters, (name) => past.nodes[name]?.families ?? []);
    const found = linesOf(past.tasks.filter((task) => fits(task) && (show !== "pool" || task.in_pool)));
    return past.stages ? found.filter((line) => line.kind === "task") : found;
  }, [past, filters, show]);
  const virtual = useVirtualizer({ count: lines.length, getScrollElement: () => scroller.current, estimateSize: () => 30, overscan: 15 });
  const pooled = past.tasks.filter((task) => task.in_pool).length;
  return (
    <section className="past-tasks" aria-label="Tasks as they were">
      <header>
        <b>{pooled} in the pool</b><span className="muted">of {past.tasks.length} that were known at that time{past.points_left_out > 0 ? `; ${leftOutText(past.points_left_out)}` : ""}</span>
        <label className="end"><input type="checkbox" checked={show === "pool"} onChange={(event) => setShow(event.target.checked ? "pool" : "all")} /> only the pool</label>
      </header>
      {lines.length === 0 ? (
        <Empty title={past.batch === 0 ? "The run had not begun" : "There are no tasks"}>{past.batch === 0 ? "Move the slider to see what happened later." : "No task was in the pool then, or no task matches the filters."}</Empty>
      ) : (
        <div className="past-lines" ref={scroller} tabIndex={0} role="list" aria-label="Tasks">
          <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
            {virtual.getVirtualItems().map((item) => {
              const line = lines[item.index];
              if (line === undefined) return null;
              const place = { transform: `translateY(${item.start}px)` };
              if (line.kind === "point") {
                return <div key={item.key} role="listitem" className="past-line point" style={place}><b className="mono">{line.point}</b><CountsBar counts={line.counts} total={line.total} /></div>;
              }
              const { task } = line;
              return (
                <div key={item.key} role="listitem" className={`past-line${task.in_pool ? " pooled" : ""}${touched.has(task.id) ? " touched" : ""}`} style={place}>
                  <button type="button" className="link" aria-pressed={task.id === selected} onClick={() => select(task.id)}>{past.stages ? shownId(task.id) : task.name}</button>
                  <StateWord state={task.state} remarks={task.remarks} />
                  <span className="muted end">{touched.has(task.id) && <i className="just">just now</i>}{task.submit > 0 ? `#${task.submit}` : ""}{!past.stages && task.flows.some((flow) => flow > 1) ? ` flow ${task.flows.join(", ")}` : ""}</span>
                </div>
              );
            })}
          </div>
        </div>
      )}
    </section>
  );
}
