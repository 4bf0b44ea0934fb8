/** One task of the queue: why it does not run, how it was tried, and what can be done. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Fragment, useState } from "react";
import { inPath, post } from "../../api/http";
import { storedAttemptsQuery, storedTaskQuery, storedWhyQuery } from "../../api/storeQueries";
import { useMay } from "../../api/session";
import { TASK_NAMES, type StoredTask } from "../../api/storeTypes";
import { Confirm } from "../../ui/Confirm";
import { Button, Failure, Loading } from "../../ui/parts";
import { endingOf } from "../../ui/endings";
import { plain } from "../../ui/plain";
import { StateIcon, StateWord } from "../../ui/StateIcon";
import { bytesText, countText } from "../../ui/quantities";
import { At, Took } from "../../ui/time";
import { againOf, isOver, jobOf } from "./again";
import { ResubmitDialog } from "./ResubmitDialog";
import { TaskLog } from "./TaskLog";

export function TaskAside({ id, close, select }: { id: string; close: () => void; select: (id: string) => void }) {
  const { data: task, error, refetch } = useQuery(storedTaskQuery(id));
  return (
    <aside className="task-aside" aria-label={`Task ${id}`}>
      <header><h2 className="mono">{id}</h2><Button look="quiet" aria-label="Close the task" onClick={close}>✕</Button></header>
      {error !== null && <Failure error={error} retry={() => void refetch()} />}
      {task === undefined && error === null && <Loading what={id} />}
      {task && <Body task={task} select={select} />}
    </aside>
  );
}

function Body({ task, select }: { task: StoredTask; select: (id: string) => void }) {
  const job = jobOf(task);
  const again = againOf(task.id);
  return (
    <>
      <p><StateWord state={task.status} kind="statuses" /></p>
      {job && <p><Link to="/runs/$run" params={{ run: job.run }} search={{ select: job.id }}>{job.id} of {job.run}</Link></p>}
      {again && <p>Resubmission number {again.number} of <button type="button" className="link" onClick={() => select(again.first)}>{plain(again.first)}</button></p>}
      <Verbs task={task} isJob={job !== null} select={select} />
      {(!isOver(task) || task.status === "cancelled") && task.status !== "running" && <Why id={task.id} />}
      {task.errors.slice(-1).map((error) => <p key={error.code} className="error-text">{plain(error.description || error.code)}</p>)}
      <Attempts id={task.id} />
      {task.attempt > 0 && <TaskLog key={task.id} task={task} />}
      <dl className="facts">
        <dt>queue</dt><dd>{task.queue}</dd>
        <dt>priority</dt><dd>{task.priority}</dd>
        <dt>retries</dt><dd>{task.max_retries === 0 ? "none" : `${Math.min(task.failures, task.max_retries)} of ${task.max_retries} used`}</dd>
        <dt>asks for</dt><dd>{asksText(task)}</dd>
        <dt>submitted</dt><dd><At at={task.created_at} /></dd>
        {task.due_at && <><dt>due</dt><dd><At at={task.due_at} /></dd></>}
        {task.open_needs > 0 && <><dt>waits for</dt><dd>{countText(task.open_needs, "task")}</dd></>}
        {task.handler && <><dt>handler</dt><dd>{task.handler}</dd></>}
        {TASK_NAMES.map((name) => task[name] && <Fragment key={name}><dt>{name.replace("_", " ")}</dt><dd>{plain(task[name])}</dd></Fragment>)}
      </dl>
      {task.command && <details><summary>Command</summary><pre>{plain(task.command)}</pre></details>}
      {task.environment != null && <details><summary>Environment</summary><pre>{plain(JSON.stringify(task.environment, null, 1))}</pre></details>}
      {task.spec !== undefined && task.spec !== null && <details><summary>Spec</summary><pre>{plain(task.spec_text ?? JSON.stringify(task.spec, null, 2))}</pre></details>}
    </>
  );
}

function asksText(task: StoredTask): string {
  const { cpu, memory_bytes, gpu, labels } = task.resources;
  return [cpu && `${cpu} CPU`, memory_bytes && bytesText(memory_bytes), gpu && `${gpu} GPU`, ...labels].filter(Boolean).join(", ") || "nothing";
}

function Verbs({ task, isJob, select }: { task: StoredTask; isJob: boolean; select: (id: string) => void }) {
  const [asking, setAsking] = useState<"cancel" | "again" | null>(null);
  const [operates, submits] = [useMay("operate"), useMay("submit")];
  const close = () => setAsking(null);
  return (
    <div className="panel-verbs" role="group" aria-label="Actions">
      {!isOver(task) && (operates || submits) && <Button className="risky" onClick={() => setAsking("cancel")}>Cancel</Button>}
      {!isJob && isOver(task) && submits && <Button onClick={() => setAsking("again")}>Submit again</Button>}
      {asking === "cancel" && (
        <Confirm title={`Cancel ${task.id}`} button="Cancel the task" danger stale={["store"]} onClose={close} act={() => post(`/tasks/${inPath(task.id)}/cancel`)}>
          <p>{task.status === "running" || task.status === "cancelling" ? "Its job is told to end." : "It will not run."} Tasks that need it will not run either.</p>
        </Confirm>
      )}
      {asking === "again" && <ResubmitDialog ids={[task.id]} onClose={close} onDone={(told) => select(told[0]?.id ?? task.id)} />}
    </div>
  );
}

function Why({ id }: { id: string }) {
  const { data } = useQuery(storedWhyQuery(id));
  if (!data?.length) return null;
  return <section className="aside-why" aria-label="Why it does not run"><h3>Why it does not run</h3><ul>{data.map((reason) => <li key={reason}>{plain(reason)}</li>)}</ul></section>;
}

function Attempts({ id }: { id: string }) {
  const { data } = useQuery(storedAttemptsQuery(id));
  if (!data?.length) return null;
  return (
    <section>
      <h3>Attempts</h3>
      <ol className="aside-attempts">
        {[...data].reverse().map((one) => (
          <li key={one.attempt}>
            <StateIcon state={one.ended_by === null ? "running" : endingOf(one.ended_by).status} kind="statuses" size={13} />{" "}
            <b>{one.attempt}</b> {one.ended_by === null ? "running" : endingOf(one.ended_by).word}{one.exit_status !== null && `, exit ${one.exit_status}`} <span className="muted">on {one.worker}</span>
            <span className="end"><Took from={one.started_at ?? one.claimed_at} to={one.ended_at} /></span>
            {one.error && <p className="error-text">{plain(one.error.description)}</p>}
          </li>
        ))}
      </ol>
    </section>
  );
}
