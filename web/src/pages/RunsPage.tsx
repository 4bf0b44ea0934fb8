/** All runs as a list: those that need action first, each with how far it is and what keeps it. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { ActingProvider, useActing } from "../acting/Acting";
import { runPagesQuery } from "../api/queries";
import { useMay } from "../api/session";
import type { ListedRun, RunFacts, RunSummary } from "../api/types";
import { Button, CountsBar, Empty, Failure, Loading } from "../ui/parts";
import { plain } from "../ui/plain";
import { countText } from "../ui/quantities";
import { useRoving } from "../ui/roving";
import { Ago, durationText, useNow } from "../ui/time";
import { StallAge } from "./home/StallAge";
import { causeOf, inOrder, isAbandoned, isOver, isPossible, progressText, runFilter, secondsLeft, tookSeconds, urgency, usualSeconds } from "./runOrder";
import { RunStatus } from "./RunStatus";
import "./runs.css";

export function RunList({ name, status }: { name: string; status: string }) {
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(runPagesQuery);
  const runs = useMemo(() => data?.pages.flatMap((page) => page.runs), [data]);
  const summaries = useMemo(() => new Map((runs ?? []).flatMap((run) => (run.summary == null ? [] : [[run.name, { ...run.summary, run }] as const]))), [runs]);
  const usual = useMemo(() => usualSeconds(runs ?? []), [runs]);
  const roving = useRoving<HTMLUListElement>("li");
  const sorted = useMemo(() => inOrder(runs ?? [], summaries), [runs, summaries]);
  const { count, end } = useDrawn();
  if (error !== null && runs === undefined) return <Failure error={error} retry={() => void refetch()} />;
  if (runs === undefined) return <Loading what="runs" />;
  const sought = runFilter(name);
  const statuses = status.split(",").filter(Boolean);
  const shown = sorted.filter((run) => sought.fits([run.name], [run.status]) && (statuses.length === 0 || statuses.includes(run.status)));
  return (
    <>
      {runs.length > 0 && shown.length === 0 && <Empty title="No run matches">{countText(runs.length, "run")}; none has this name and status.</Empty>}
      <ul {...roving} className="run-list">
        {shown.slice(0, count).map((run) => (
          <li key={run.number}>
            <ActingProvider run={run.name}><RunLine run={run} summary={summaries.get(run.name)} usual={usual.get(run.workflow) ?? null} /></ActingProvider>
          </li>
        ))}
      </ul>
      {count < shown.length && <p ref={end} className="older-runs muted">{shown.length - count} more below</p>}
      {hasNextPage && <p className="older-runs"><Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>{isFetchingNextPage ? "Loading …" : "Show older runs"}</Button></p>}
    </>
  );
}

const DRAWN = 60; // lines at once; more come before one has scrolled to their end

/** How many lines are drawn, and what to watch: as long as its place is near, more are. */
function useDrawn(): { count: number; end: (place: HTMLElement | null) => (() => void) | undefined } {
  const [count, setCount] = useState(DRAWN);
  const end = useCallback((place: HTMLElement | null) => {
    if (place === null) return undefined;
    const watch = new IntersectionObserver(([seen]) => { if (seen?.isIntersecting) setCount((old) => old + DRAWN); }, { rootMargin: "1200px" });
    watch.observe(place);
    return () => watch.disconnect();
  }, [count]); // eslint-disable-line react-hooks/exhaustive-deps -- it is watched anew: what stays in sight tells nothing
  return { count, end };
}

function RunLine({ run, summary, usual }: { run: ListedRun; summary: RunSummary | undefined; usual: number | null }) {
  const alarm = urgency(run, summary) <= 3;
  return (
    <article className={alarm ? "run-line card alarm" : "run-line card"}>
      <div className="run-name">
        <Link to="/runs/$run" params={{ run: run.name }} data-stop tabIndex={-1}>{run.name}</Link>
        <RunStatus run={run} />
      </div>
      <div className="run-progress">
        {summary && <CountsBar counts={summary.counts} total={summary.tasks} />}
        {summary && (
          <div className="run-figures">
            <span>{progressText(summary)}</span>
            {!alarm && <Left run={run} usual={usual} />}
            <Took run={run} usual={usual} />
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

function Took({ run, usual }: { run: RunFacts; usual: number | null }) {
  const seconds = tookSeconds(run);
  if (seconds === null) return null;
  return <span className="muted" title={usual === null ? "" : `Runs of ${run.workflow} usually take ${durationText(usual)}`}>took {durationText(seconds)}</span>;
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
  if (isAbandoned(run)) return <p className="run-trouble">No scheduler drives this run: continue it.</p>;
  if (run.status === "error") return <p className="run-trouble">{plain(run.reason)}</p>;
  if (run.waits.length > 0) return <p className="run-waits muted">waits for {plain(run.waits.join("; "))}</p>;
  if (run.reason.startsWith("completed, ")) return <p className="run-waits muted">{plain(run.reason)}</p>; // with what was not done
  const cause = summary === undefined || isOver(run) ? null : causeOf(summary);
  if (cause === null) return null;
  return (
    <p className="run-trouble">
      <Link to="/runs/$run" params={{ run: run.name }} search={{ select: cause.id }} data-stop tabIndex={-1}>{plain(cause.title)}</Link>{plain(cause.text)}
    </p>
  );
}

function RunButtons({ run }: { run: RunFacts }) {
  const { act } = useActing();
  if (!useMay("operate")) return <div className="run-buttons" />;
  const goes = run.driven || run.offered;
  return (
    <div className="run-buttons">
      {run.status === "paused" && <Button data-stop tabIndex={-1} onClick={() => act({ verb: "resume" })}>Resume</Button>}
      {goes && ["running", "stalled"].includes(run.status) && <Button look="plain" data-stop tabIndex={-1} onClick={() => act({ verb: "pause" })}>Pause</Button>}
      {goes && !isOver(run) && run.status !== "stopping" && <Button look="risky" data-stop tabIndex={-1} onClick={() => act({ verb: "stop" })}>Stop</Button>}
      {isPossible("run", run) && <Button data-stop tabIndex={-1} onClick={() => act({ verb: "run" })}>Continue</Button>}
    </div>
  );
}
