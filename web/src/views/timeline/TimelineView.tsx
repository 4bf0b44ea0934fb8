/** When jobs waited and ran: a row for each task, the critical path marked, up to now. */
import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";
import { attemptsQuery, criticalPathQuery } from "../../api/queries";
import { useLive } from "../../api/runLive";
import { isFiltering, rowFilter } from "../../pages/run/filters";
import { needsAction } from "../../pages/run/trouble";
import { useRunPage, useViewOption } from "../../pages/run/useRunPage";
import { Button, Empty, Failure, Loading } from "../../ui/parts";
import { durationText, useNow } from "../../ui/time";
import { Chart } from "./Chart";
import { barsAt, timeRows, wholeSpan, zoomed, type Span, type TimeRow } from "./timeline";
import "./timeline.css";

export function TimelineView() {
  const { run: name, filters, clearFilters } = useRunPage();
  const { rows: tasks, nodes, run } = useLive();
  const [by, setBy] = useViewOption("timeline", "by", "task");
  const [only, setOnly] = useViewOption("timeline", "only", "");
  const [span, setSpan] = useState<Span | null>(null); // null: all of it, however it grows
  const seen = useRef<readonly TimeRow[]>([]);
  const found = useQuery(attemptsQuery(name));
  const path = useQuery(criticalPathQuery(name, ""));
  const now = useNow();
  // Without a job at work nothing moves: what has been keeps its width.
  const over = run === null || ["completed", "stopped", "error"].includes(run.status);
  const critical = useMemo(() => new Set(path.data?.steps.map((step) => step.task)), [path.data]);
  const unwell = useMemo(() => new Set(tasks.filter(needsAction).map((task) => task.id)), [tasks]);
  const shown = useMemo(() => {
    const attempts = found.data?.attempts ?? [];
    if (!isFiltering(filters)) return attempts;
    const fits = new Set(tasks.filter(rowFilter(filters, (one) => nodes[one]?.families ?? [])).map((row) => row.id));
    return attempts.filter((attempt) => fits.has(attempt.id));
  }, [found.data, tasks, nodes, filters]);
  const rows = useMemo(() => {
    const all = timeRows(shown, critical, by === "name" ? "name" : "task");
    return only === "critical" ? all.filter((row) => row.critical) : all;
  }, [shown, critical, by, only]);
  if (found.data === undefined) return found.error === null ? <Loading what="the timeline" /> : <Failure error={found.error} retry={() => void found.refetch()} />;
  const live = !over && found.data.attempts.some((attempt) => attempt.ended_at === null);
  const whole = wholeSpan(rows, now, live);
  const zoom = (factor: number) => setSpan(zoomed(span ?? whole, factor, barsAt(seen.current, span ?? whole, now), whole));
  return (
    <div className="timeline-view">
      <div className="view-bar">
        <label>rows <select value={by} onChange={(event) => setBy(event.target.value)}><option value="task">each task</option><option value="name">each name</option></select></label>
        <Button look="quiet" aria-pressed={only === "critical"} disabled={critical.size === 0} onClick={() => setOnly(only === "critical" ? "" : "critical")} title="Only the chain of jobs that made the run take so long">
          <i className="critical-mark" aria-hidden /> critical path{path.data?.seconds != null && `: ${path.data.steps.length} job${path.data.steps.length === 1 ? "" : "s"}, ${durationText(path.data.seconds)}`}
        </Button>
        <span className="timeline-zoom">
          <Button look="quiet" title="Zoom in (+, Ctrl and wheel)" onClick={() => zoom(0.5)}>Zoom in</Button>
          <Button look="quiet" title="Zoom out (-)" disabled={span === null} onClick={() => zoom(2)}>Zoom out</Button>
          <Button look="quiet" disabled={span === null} title="Show the whole time range (0)" onClick={() => setSpan(null)}>Fit</Button>
        </span>
        <Legend />
        {found.data.left_out && <span className="muted">older jobs are left out</span>}
      </div>
      {rows.length === 0 ? (
        <Empty title={found.data.attempts.length === 0 ? "No job has been queued yet" : "No job matches the filters"}>
          {found.data.attempts.length === 0 ? "Bars appear with the first job." : <Button onClick={() => { clearFilters(); setOnly(""); }}>Show all</Button>}
        </Empty>
      ) : (
        <Chart rows={rows} unwell={unwell} whole={whole} span={span ?? whole} setSpan={setSpan} now={now} live={live} seen={seen} />
      )}
    </div>
  );
}

function Legend() {
  return <span className="timeline-legend muted" aria-label="Bars"><i className="queued" /> waited <i className="ran" /> ran <i className="ran failed" /> failed</span>;
}
