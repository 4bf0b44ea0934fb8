/** All runs as a list: those that need action first, each with how far it is and what keeps it. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { ActingProvider, useActing } from "../acting/Acting";
import { runPagesQuery } from "../api/queries";
import { useMay } from "../api/session";
import type { ListedRun, RunFacts, RunSummary } from "../api/types";
import { globMatcher } from "../ui/globs";
import { Button, CountsBar, Empty, Failure, Loading } from "../ui/parts";
import { plain } from "../ui/plain";
import { StateWord } from "../ui/StateIcon";
import { Ago, durationText, useNow } from "../ui/time";
import { StallAge } from "./home/StallAge";
import { inOrder, isAbandoned, isOver, progressText, secondsLeft, urgency, usualSeconds } from "./runOrder";
import "./runs.css";

export function RunList({ name, status }: { name: string; status: string }) {
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(runPagesQuery);
  const runs = useMemo(() => data?.pages.flatMap((page) => page.runs), [data]);
  const summaries = useMemo(() => new Map((runs ?? []).flatMap((run) => (run.summary == null ? [] : [[run.name, { ...run.summary, run }] as const]))), [runs]);
  const usual = useMemo(() => usualSeconds(runs ?? []), [runs]);
  const sorted = useMemo(() => inOrder(runs ?? [], summaries), [runs, summaries]);
  if (error !== null && runs === undefined) return <Failure error={error} retry={() => void refetch()} />;
  if (runs === undefined) return <Loading what="runs" />;
  const fits = globMatcher(name);
  const statuses = status.split(",").filter(Boolean);
  const shown = sorted.filter((run) => fits(run.name) && (statuses.length === 0 || statuses.includes(run.status)));
  return (
    <>
      {runs.length > 0 && shown.length === 0 && <Empty title="No run fits">None of {runs.length} runs has this name and status.</Empty>}
      <ul className="run-list">
        {shown.map((run) => (
          <li key={run.number}>
            <ActingProvider run={run.name}><RunLine run={run} summary={summaries.get(run.name)} usual={usual.get(run.workflow) ?? null} /></ActingProvider>
          </li>
        ))}
      </ul>
      {hasNextPage && <p className="older-runs"><Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>{isFetchingNextPage ? "Loading …" : "Show older runs"}</Button></p>}
    </>
  );
}

function RunLine({ run, summary, usual }: { run: ListedRun; summary: RunSummary | undefined; usual: number | null }) {
  const alarm = urgency(run, summary) <= 3;
  return (
    <article className={alarm ? "run-line card alarm" : "run-line card"}>
      <div className="run-name">
        <Link to="/runs/$run" params={{ run: run.name }}>{run.name}</Link>
        <StateWord state={run.status} kind="runs" />
      </div>
      <div className="run-progress">
        {summary && <CountsBar counts={summary.counts} total={summary.tasks} />}
        {summary && (
          <div className="run-figures">
            <span>{progressText(summary)}</span>
            {!alarm && <Left run={run} usual={usual} />}
            <PointsText summary={summary} />
          </div>
        )}
      </div>
      <div className="run-when muted">{summary?.stall ? <StallAge status={run.status} since={summary.stall.since} /> : <Ago at={run.updated_at} />}</div>
      <RunButtons run={run} />
      <Trouble run={run} summary={summary} />
    </article>
  );
}

/** As runs of the same workflow went before. */
function Left({ run, usual }: { run: RunFacts; usual: number | null }) {
  const left = secondsLeft(run, usual, useNow());
  if (left === null || usual === null) return null;
  return <span className="muted" title={`Runs of ${run.workflow} usually take ${durationText(usual)}`}>about {durationText(Math.ceil(left)).replace(".0", "")} left</span>;
}

function PointsText({ summary }: { summary: RunSummary }) {
  const { known, oldest, newest, final } = summary.points;
  if (newest === null || (known === 1 && (final === null || final === newest))) return null; // it does not cycle
  const span = oldest !== null && oldest !== newest ? `points ${oldest} to ${newest}` : `point ${newest}`;
  return <span className="muted">{span}{final !== null && final !== newest ? `, ends at ${final}` : ""}</span>;
}

function Trouble({ run, summary }: { run: ListedRun; summary: RunSummary | undefined }) {
  if (isAbandoned(run)) return <p className="run-trouble">No scheduler drives it: resume it.</p>;
  if (run.status === "error") return <p className="run-trouble">{plain(run.reason)}</p>;
  if (run.waits.length > 0) return <p className="run-waits muted">waits for {plain(run.waits.join("; "))}</p>;
  if (run.reason.startsWith("completed, ")) return <p className="run-waits muted">{plain(run.reason)}</p>; // with what was not done
  const [cause] = summary?.causes ?? [];
  if (summary === undefined || cause === undefined || isOver(run)) return null;
  const more = summary.causes_count - 1;
  return (
    <p className="run-trouble">
      <Link to="/runs/$run" params={{ run: run.name }} search={{ select: cause.id }}>{cause.id}</Link>{" "}
      {plain(cause.reasons[0]?.text.replace(`${cause.id} `, "") ?? cause.state)}{more > 0 ? `, and ${more} more` : ""}
    </p>
  );
}

function RunButtons({ run }: { run: RunFacts }) {
  const { act } = useActing();
  if (!useMay("operate")) return <div className="run-buttons" />;
  const goes = run.driven || run.offered;
  return (
    <div className="run-buttons">
      {run.status === "paused" && <Button onClick={() => act({ verb: "resume" })}>Resume</Button>}
      {goes && ["running", "stalled"].includes(run.status) && <Button look="plain" onClick={() => act({ verb: "pause" })}>Pause</Button>}
      {goes && !isOver(run) && run.status !== "stopping" && <Button look="risky" onClick={() => act({ verb: "stop" })}>Stop</Button>}
      {(isAbandoned(run) || ["stopped", "error"].includes(run.status)) && !run.offered && <Button onClick={() => act({ verb: "run" })}>Continue</Button>}
    </div>
  );
}
