/** How the run is as a whole, what keeps it, and what can be done about it. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useCallback, useRef, useState } from "react";
import { useActing } from "../../acting/Acting";
import { RUN_VERBS } from "../../acting/verbs";
import { factsQuery, summaryQuery } from "../../api/queries";
import { useLive, useMayAct } from "../../api/runLive";
import { useMay } from "../../api/session";
import type { RunFacts, RunSummary } from "../../api/types";
import { withKey } from "../../shell/keys";
import { useClosing } from "../../ui/menus";
import { Button, CountsBar } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { Ago } from "../../ui/time";
import { allTasks, isAbandoned, isOver, isPossible, progressText, withDriver } from "../runOrder";
import { RunStatus } from "../RunStatus";
import { Banner } from "./Banner";
import { useMeant } from "./TaskKeys";
import { useRunPage } from "./useRunPage";

export function RunHeader() {
  const { run: name } = useRunPage();
  const { run: told, stages } = useLive();
  const { data: facts } = useQuery(factsQuery(name));
  const { data: summary } = useQuery(summaryQuery(name));
  if (told === null) return null;
  const run = withDriver(told, facts);
  return (
    <header className="run-header">
      <div className="run-title">
        <Link to="/runs" className="muted" aria-label="All runs">Runs</Link>
        <span className="faint">/</span>
        {facts?.parent && <><Link to="/runs/$run" params={{ run: facts.parent }} className="muted" aria-label="The run whose task started this run">{facts.parent}</Link><span className="faint">/</span></>}
        <h1>{run.name}</h1>
        <RunStatus run={run} />
        <Link to="/definition" search={{ run: run.name }} className="muted" title="The definition of this run, its errors and warnings, and what each reload changed">definition</Link>
        {run.reason !== "" && run.status !== "stalled" && run.reason !== run.status && <span className="muted ellipsis">{plain(run.reason)}</span>}
      </div>
      {summary && (
        <div className="run-bar">
          <CountsBar counts={summary.counts} total={allTasks({ ...summary, run }) ?? summary.tasks} signs />
          <span className="muted nowrap">
            {progressText({ ...summary, run })}
            {" · "}changed <Ago at={run.updated_at} />
          </span>
          {!stages && <StopPoint points={summary.points} over={isOver(run)} />}
        </div>
      )}
      <RunVerbs run={run} />
      {isAbandoned(run) && <Abandoned />}
      {summary && <Banner run={run} summary={summary} />}
    </header>
  );
}

/** A stop point that comes near (R001-31). */
function StopPoint({ points, over }: { points: RunSummary["points"]; over: boolean }) {
  if (points.to_come === null || points.final === null || over) return null;
  const text = points.to_come === 0 ? `at its stop point ${points.final}` : `stop point ${points.final}: ${points.to_come === 1 ? "one point" : `${points.to_come} points`} left`;
  return <span className={points.to_come < 2 ? "chip near-stop" : "chip"} title="The run stops when everything up to this point is done">{text}</span>;
}

/** On a phone behind a button beside the name. */
function RunVerbs({ run }: { run: RunFacts }) {
  const { act, write } = useActing();
  const meant = useMeant();
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const close = useCallback(() => setOpen(false), []);
  useClosing(box, close);
  if (!useMayAct()) return null;
  return (
    <div className="run-verbs" ref={box}>
      <Button className="run-actions" aria-expanded={open} aria-controls="run-verbs" onClick={() => setOpen(!open)}>Actions</Button>
      <div id="run-verbs" className={open ? "open" : ""} role="group" aria-label="Actions on the run" onClick={close}>
      {RUN_VERBS.filter(({ verb }) => isPossible(verb, run)).map(({ verb, button, says, danger }) => (
        <Button key={verb} look={danger ? "risky" : "plain"} title={says} onClick={() => act({ verb })}>{button}</Button>
      ))}
      <Button title={withKey("Any command: for tasks that match a pattern, for a cycle point, or for an outside event", "command")} onClick={() => write(meant())}>Command …</Button>
      </div>
    </div>
  );
}

/** Jobs that run go on, and nobody hears of them. */
function Abandoned() {
  const { act } = useActing();
  const may = useMay("operate");
  return (
    <div className="run-causes" role="alert">
      <b>No scheduler drives this run</b>
      <p>Until a scheduler continues it, nothing is submitted, and reports of jobs are not read.{may && <Button onClick={() => act({ verb: "run" })}>Continue</Button>}</p>
    </div>
  );
}
