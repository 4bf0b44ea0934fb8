/** The log of a job or of the run: its end, followed while it grows, or any other part; or a search in those of all jobs. */
import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useState, useSyncExternalStore, type ReactNode } from "react";
import { taskQuery } from "../../api/queries";
import { useTaskRow } from "../../api/runLive";
import { shownId, taskWord } from "../../api/shown";
import { useChange, useRunPage, useViewOption } from "../../pages/run/useRunPage";
import { Button, Empty, Failure, Loading } from "../../ui/parts";
import { attemptsOf, choose, FILES, type Choice } from "./choice";
import { LogFollower, type LogPlace } from "./follower";
import { JobsSearch } from "./JobsSearch";
import { LogLines } from "./LogLines";
import { readPicked, writePicked, type Picked } from "./rows";
import "./logs.css";

export function LogsView() {
  const { run, selected } = useRunPage();
  const [of, setOf] = useViewOption("logs", "of", "task");
  const isRun = of !== "all" && (of === "run" || selected === null);
  const whose = (
    <select aria-label="Whose log" value={of === "all" ? "all" : isRun ? "run" : "task"} onChange={(event) => setOf(event.target.value)}>
      {selected !== null && <option value="task">{shownId(selected)}</option>}
      <option value="run">the log of the run</option>
      <option value="all">all jobs: search</option>
    </select>
  );
  return (
    <div className="logs-view">
      {of === "all" ? <JobsSearch run={run} whose={whose} /> : isRun ? (
        <>
          <div className="view-bar">{whose}{selected === null && <span className="muted">Select a {taskWord()} to see what its job wrote.</span>}</div>
          <Log key="run" place={{ run, id: "", file: "out", submit: null, attempt: null }} name={run} />
        </>
      ) : selected !== null && <TaskLog key={selected} run={run} id={selected} whose={whose} />}
    </div>
  );
}

function TaskLog({ run, id, whose }: { run: string; id: string; whose: ReactNode }) {
  const row = useTaskRow(id);
  const [file, setFile] = useViewOption("logs", "file", "out");
  const [wanted, setWanted] = useViewOption("logs", "attempt", "");
  const { data: task, error, refetch } = useQuery(taskQuery(run, id));
  const choices = useMemo(() => attemptsOf(task?.submissions ?? []), [task]);
  const chosen = choose(choices, id, wanted);
  if (task === undefined) return error === null ? <Loading what={shownId(id)} /> : <Failure error={error} retry={() => void refetch()} />;
  if (chosen === undefined) {
    return (
      <>
        <div className="view-bar">{whose}</div>
        <Empty title={`${shownId(id)} has written nothing`}>It is {row?.state ?? task.state}, and its job has not begun. The log appears when the job begins; the panel says what it waits for.</Empty>
      </>
    );
  }
  const place = { run, id, file, submit: chosen.submit, attempt: chosen.attempt };
  const named = wanted.startsWith(`${id}:`) ? chosen.key : "";
  return (
    <>
      <div className="view-bar logs-choice">
        {whose}
        <div className="view-toggles" role="group" aria-label="File">
          {FILES.map(([name, word, says]) => (
            <button key={name} type="button" className="button" aria-pressed={file === name} title={says} onClick={() => setFile(name)}>{word}</button>
          ))}
        </div>
        <select aria-label="Submission and attempt" value={named} onChange={(event) => setWanted(event.target.value && `${id}:${event.target.value}`)}>
          <option value="">the latest: {choiceText(choices[0])}</option>
          {choices.map((one) => <option key={one.key} value={one.key}>{choiceText(one)}</option>)}
        </select>
      </div>
      <Log key={JSON.stringify(place)} place={place} name={`${shownId(id)} ${file}`} />
    </>
  );
}

const choiceText = (one: Choice | undefined): string => (one === undefined ? "" : `submission ${one.submit}, attempt ${one.attempt}${one.ended === "" ? "" : `: ${one.ended}`}`);

function Log({ place, name }: { place: LogPlace; name: string }) {
  const { id, file, submit, attempt } = place;
  const [lines] = useViewOption("logs", "lines", "");
  const change = useChange();
  const picked = useMemo(() => readPicked(lines, id, file), [lines, id, file]);
  const [follower] = useState(() => new LogFollower(place, picked?.from ?? null));
  useEffect(() => {
    follower.start();
    return () => follower.stop();
  }, [follower]);
  // A link leads to the attempt that was seen, whichever is the latest by then.
  const pick = useCallback(
    (next: Picked | null) => change({ "logs.lines": next === null ? "" : writePicked(id, file, next), ...(next === null || submit === null ? {} : { "logs.attempt": `${id}:${submit}.${attempt}` }) }, true),
    [change, id, file, submit, attempt],
  );
  const state = useSyncExternalStore(follower.subscribe, follower.snapshot);
  if (state.phase === "failed") {
    return (
      <Empty title="There is no such log here">
        {state.problem?.message} <p><Button onClick={() => follower.start()}>Look again</Button></p>
      </Empty>
    );
  }
  if (state.phase === "loading") return state.problem === null || state.problem.status === 404 ? <Loading what="the log" /> : <Failure error={state.problem} />;
  return <LogLines follower={follower} state={state} place={place} name={name} picked={picked} pick={pick} />;
}
