/** What the last job of a task used over time. */
import { useQuery } from "@tanstack/react-query";
import { get, inPath } from "../api/http";
import type { TaskDocument } from "../api/types";
import { durationText } from "../ui/time";
import { linePath, usageLines, type UsageLine, type UsagePoint } from "./usage";

const [WIDTH, HEIGHT] = [300, 44];

export function UsagePlot({ task }: { task: TaskDocument }) {
  const last = task.submissions.at(-1);
  const { data } = useQuery({
    queryKey: ["run", task.run, "usage", last?.task],
    queryFn: ({ signal }) => get<{ usage: UsagePoint[] }>(`/tasks/${inPath(last?.task ?? "")}/usage`, signal),
    enabled: last !== undefined,
  });
  if (last === undefined) return <p className="muted">It has not run.</p>;
  if (data === undefined) return null;
  if (data.usage.length === 0) return <p className="muted">Nothing was measured of submission {last.submit}: it was too short, or its worker does not measure.</p>;
  return <div className="usage">{usageLines(data.usage).map((line) => <Plot key={line.name} line={line} />)}</div>;
}

function Plot({ line }: { line: UsageLine }) {
  const path = linePath(line, WIDTH, HEIGHT);
  const seconds = line.values.at(-1)?.seconds ?? 0;
  const says = `${line.name}: at most ${line.text(line.most)} in ${durationText(seconds)}`;
  return (
    <figure>
      <figcaption><b>{line.name}</b> <span className="muted">at most {line.text(line.most)}</span><span className="faint end">{durationText(seconds)}</span></figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={says}>
        <path className="area" d={`${path}V${HEIGHT}H0Z`} />
        <path className="line" d={path} />
      </svg>
    </figure>
  );
}
