/** How attempts ended, waited and ran: all together, per queue, per name. */
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { statisticsQuery } from "../../api/storeQueries";
import type { Quantiles, Statistics } from "../../api/storeTypes";
import { lookOf } from "../../ui/palette";
import { Button, Empty, Failure, Loading, patternOf } from "../../ui/parts";
import { bytesText, percentText, rateText } from "../../ui/quantities";
import { durationText } from "../../ui/time";
import { useAddress } from "../useAddress";
import { endings, sortedGroups, type SortKey } from "./statistics";
import "./elsewhere.css";

export function StatisticsPage() {
  const [search, change] = useAddress();
  const by = search.by === "name" ? "name" : "queue";
  const { data, error, refetch } = useQuery(statisticsQuery(by));
  if (error !== null && data === undefined) return <Failure error={error} retry={() => void refetch()} />;
  if (data === undefined) return <Loading what="statistics" />;
  return (
    <div className="plain-page">
      <div className="page-head"><h1>Statistics</h1><span className="muted">of {data.all.attempts === 1 ? "1 attempt that has" : `the newest ${data.all.attempts} attempts that have`} ended</span></div>
      {data.all.attempts === 0 ? <Empty title="Nothing has ended yet">Figures appear when the first attempt has ended.</Empty> : <Whole all={data.all} />}
      {data.all.attempts > 0 && (
        <>
          <div className="page-head second">
            <h2>Compared</h2>
            <div className="view-toggles" role="group" aria-label="Compared by">
              {([["queue", "by queue"], ["name", "by name"]] as const).map(([value, text]) => <Button key={value} aria-pressed={by === value} onClick={() => change({ by: value === "queue" ? "" : value })}>{text}</Button>)}
            </div>
          </div>
          <Groups groups={data.groups} by={by} />
        </>
      )}
    </div>
  );
}

function Whole({ all }: { all: Statistics }) {
  return (
    <div className="figure-cards">
      <div className="figure-card card">
        <h2>Success</h2>
        <p className="big-figure">{all.success_rate === null ? "–" : rateText(all.success_rate)}</p>
        <Ends ended={all.ended_by} total={all.attempts} />
      </div>
      <QuantileCard title="Queue time" of={all.queue_seconds} text={durationText} />
      <QuantileCard title="Run time" of={all.run_seconds} text={durationText} />
      <QuantileCard title="Memory used" of={all.memory_used_bytes} text={bytesText} />
      <QuantileCard title="Share of the requested memory that was used" of={all.memory_used_of_asked} text={(value) => percentText(100 * value)} />
      <QuantileCard title="CPU used" of={all.cpu_used_percent} text={percentText} />
    </div>
  );
}

function Ends({ ended, total }: { ended: Record<string, number>; total: number }) {
  const found = endings(ended);
  const text = found.map(({ word, count }) => `${count} ${word}`).join(", ");
  return (
    <>
      <div className="counts-bar" role="img" aria-label={text}>{found.map(({ word, status, count }) => <span key={word} className={patternOf(status)} style={{ width: `${(100 * count) / total}%`, backgroundColor: lookOf(status, "statuses").colour }} />)}</div>
      <p className="muted small">{text}</p>
    </>
  );
}

function QuantileCard({ title, of, text }: { title: string; of: Quantiles | null; text: (value: number) => string }) {
  if (of === null) return null;
  return (
    <div className="figure-card card">
      <h2>{title}</h2>
      <p className="big-figure">{text(of.p50)} <span className="muted small">median</span></p>
      <dl className="quantiles">{([["p90", of.p90, "90 % are at or below this value"], ["p99", of.p99, "99 % are at or below this value"], ["maximum", of.max, ""], ["mean", of.mean, ""]] as const).map(([name, value, says]) => <div key={name} title={says}><dt>{name}</dt><dd>{text(value)}</dd></div>)}</dl>
    </div>
  );
}

const COLUMNS: readonly [SortKey, string][] = [["name", ""], ["attempts", "Attempts"], ["success", "Success"], ["queue", "Waited, median"], ["queue90", "Waited, p90"], ["run", "Ran, median"], ["run90", "Ran, p90"], ["memory", "Memory, maximum"]];

function Groups({ groups, by }: { groups: Record<string, Statistics>; by: string }) {
  const [sort, setSort] = useState<SortKey>("attempts");
  const rows = useMemo(() => sortedGroups(groups, sort), [groups, sort]);
  if (rows.length === 0) return <Empty title={`No ${by} to compare`}>{by === "name" ? "Only tasks that were submitted with a name are compared here. For the tasks of a run, open its view Analysis." : ""}</Empty>;
  return (
    <div className="card table-card">
      <table className="plain-table">
        <thead><tr>{COLUMNS.map(([key, title]) => <th key={key} aria-sort={sort === key ? "descending" : "none"}><button type="button" onClick={() => setSort(key)}>{title || (by === "name" ? "Name" : "Queue")}{sort === key && <i aria-hidden> ↓</i>}</button></th>)}</tr></thead>
        <tbody>
          {rows.map(([name, one]) => (
            <tr key={name}>
              <td><b>{name}</b></td>
              <td>{one.attempts}</td>
              <td className={one.success_rate !== null && one.success_rate < 0.9 ? "bad-figure" : ""}>{one.success_rate === null ? "" : rateText(one.success_rate)}</td>
              <td>{one.queue_seconds && durationText(one.queue_seconds.p50)}</td>
              <td>{one.queue_seconds && durationText(one.queue_seconds.p90)}</td>
              <td>{one.run_seconds && durationText(one.run_seconds.p50)}</td>
              <td>{one.run_seconds && durationText(one.run_seconds.p90)}</td>
              <td>{one.memory_used_bytes && bytesText(one.memory_used_bytes.max)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
