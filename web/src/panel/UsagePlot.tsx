/** What the last job of a task used over time. */
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo } from "react";
import { get, inPath } from "../api/http";
import type { TaskDocument } from "../api/types";
import { durationText } from "../ui/time";
import { SECONDS } from "../ui/quantities";
import { usageLines, type UsageLine, type UsagePoint } from "./usage";
import { part } from "../upgrade";

const HEIGHT = 110;
// Most panels show no plot, and what draws one is as large as the page without it.
const Plot = lazy(part(() => import("../ui/Plot").then((module) => ({ default: module.Plot }))));

export function UsagePlot({ task }: { task: TaskDocument }) {
  const last = task.submissions.at(-1);
  const { data } = useQuery({
    queryKey: ["run", task.run, "usage", last?.task],
    queryFn: ({ signal }) => get<{ usage: UsagePoint[] }>(`/tasks/${inPath(last?.task ?? "")}/usage`, signal),
    enabled: last !== undefined,
  });
  const lines = useMemo(() => usageLines(data?.usage ?? []), [data]);
  if (last === undefined) return <p className="muted">The task has not run.</p>;
  if (data === undefined) return null;
  if (data.usage.length === 0) return <p className="muted">No usage was measured for submission {last.submit}: its job was too short, or its worker does not measure jobs.</p>;
  return <div className="usage"><Suspense>{lines.map((line) => <Line key={line.name} line={line} />)}</Suspense></div>;
}

const between = (from: number, to: number): [number, number] => [from, to];
const COLOUR = "#0072b2";

function Line({ line }: { line: UsageLine }) {
  const seconds = line.values.at(-1)?.seconds ?? 0;
  const plot = useMemo(() => ({
    data: [line.values.map((one) => one.seconds), line.values.map((one) => one.value)] as [number[], number[]],
    // One value is a point in the middle of nothing, and looks like it.
    series: [{ label: line.name, stroke: COLOUR, fill: `${COLOUR}33`, width: 1.5, points: { show: line.values.length <= 20, size: 5, fill: COLOUR } }],
    x: { range: seconds > 0 ? between(0, seconds) : between(-1, 1), says: SECONDS, space: 70 },
  }), [line, seconds]);
  return (
    <figure>
      <figcaption><b>{line.name}</b> <span className="muted">maximum {line.scale.text(line.most)}</span><span className="faint end">{durationText(seconds)}</span></figcaption>
      <Plot label={`${line.name}: maximum ${line.scale.text(line.most)} in ${durationText(seconds)}`} data={plot.data} series={plot.series} x={plot.x} y={line.scale} place={(index) => `after ${durationText(plot.data[0][index] ?? 0)}`} height={HEIGHT} />
    </figure>
  );
}
