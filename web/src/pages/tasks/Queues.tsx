/** Every queue: what waits in it, how it is set; pause (and let it drain), resume, cancel what waits. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { inPath, post } from "../../api/http";
import { runsQuery } from "../../api/queries";
import { queuesQuery, workersQuery } from "../../api/storeQueries";
import { useMay } from "../../api/session";
import type { QueueFacts } from "../../api/storeTypes";
import { Confirm } from "../../ui/Confirm";
import { Button, Failure } from "../../ui/parts";
import { StateIcon } from "../../ui/StateIcon";
import { countText } from "../../ui/quantities";
import { durationText } from "../../ui/time";
import { isOver } from "../runOrder";
import { QueueSettings } from "./QueueSettings";
import { USUAL_LEASE_SECONDS } from "./queueSettings";

/** As workers name what they serve: a name, or one with * in it. */
const queueGlob = (glob: string): RegExp => new RegExp(`^${glob.replace(/[.+^${}()|[\]\\?]/g, "\\$&").replace(/\*/g, ".*")}$`);

type Deed = "pause" | "empty" | "resume" | "settings";
type Asking = { what: Deed; queue: QueueFacts } | null;

const CANCEL_MAX = 10_000;

const running = (queue: QueueFacts): number => (queue.counts.running ?? 0) + (queue.counts.cancelling ?? 0);
const waiting = (queue: QueueFacts): number => (queue.counts.waiting ?? 0) + (queue.counts.ready ?? 0);

/** Those in which something is open or that were set by hand, first. */
export function queueOrder(queues: readonly QueueFacts[]): QueueFacts[] {
  const weight = (one: QueueFacts) => (one.paused ? 0 : running(one) + waiting(one) > 0 ? 1 : 2);
  return [...queues].sort((a, b) => weight(a) - weight(b) || (a.queue < b.queue ? -1 : 1));
}

/** `served` by some worker: what waits where none is will wait for ever. */
export function queueWord(queue: QueueFacts, served: boolean): string {
  if (!queue.paused) return !served && (queue.counts.ready ?? 0) > 0 ? "no worker serves it" : "open";
  return running(queue) > 0 ? `draining, ${running(queue)} still run` : "paused";
}

/** That of a run which is over, with nothing open in it. `going`: the queues of runs that are not over. */
export function isLeft(queue: QueueFacts, going: ReadonlySet<string>): boolean {
  return queue.queue.startsWith("run:") && !going.has(queue.queue) && !queue.paused && running(queue) + waiting(queue) === 0;
}

const RUNS_MS = 15_000;

/** Those that somebody may want to see, and how many are folded away: a run leaves its queue behind. */
export function useQueues(all: boolean, chosen: string) {
  const { data: queues, error, refetch } = useQuery(queuesQuery);
  const { data: runs, error: unknown } = useQuery({ ...runsQuery, refetchInterval: RUNS_MS });
  const going = useMemo(() => new Set(runs?.filter((run) => !isOver(run)).map((run) => run.queue)), [runs]);
  const known = runs !== undefined || unknown !== null;
  const left = queues?.filter((queue) => runs !== undefined && isLeft(queue, going)) ?? [];
  const folded = new Set(all ? [] : left.map((queue) => queue.queue).filter((queue) => queue !== chosen));
  return { queues: known ? queues?.filter((queue) => !folded.has(queue.queue)) : undefined, left: left.length, error, refetch };
}

interface QueuesProps {
  queues: readonly QueueFacts[] | undefined;
  error: Error | null;
  retry: () => void;
  chosen: string;
  choose: (queue: string) => void;
}

export function Queues({ queues, error, retry, chosen, choose }: QueuesProps) {
  const { data: workers } = useQuery(workersQuery(false));
  const isServed = useMemo(() => {
    const globs = workers?.flatMap((worker) => worker.queues).map(queueGlob);
    return (queue: string) => globs === undefined || globs.some((fits) => fits.test(queue));
  }, [workers]);
  const [asking, setAsking] = useState<Asking>(null);
  const may = useMay("operate");
  if (error !== null && queues === undefined) return <Failure error={error} retry={retry} />;
  if (queues === undefined || queues.length === 0) return null;
  return (
    <div className="queue-list card">
      <table className="plain-table">
        <caption className="visually-hidden">Queues</caption>
        <thead><tr><th>Queue</th><th>State</th><th>Failed</th><th>Waiting</th><th>Ready</th><th>Running</th><th>Oldest ready</th><th>Settings</th><th /></tr></thead>
        <tbody>
          {queueOrder(queues).map((queue) => (
            <tr key={queue.queue} aria-selected={queue.queue === chosen}>
              <td><button type="button" className="link" aria-pressed={queue.queue === chosen} onClick={() => choose(queue.queue === chosen ? "" : queue.queue)}>{queue.queue}</button></td>
              <td className={queueWord(queue, isServed(queue.queue)) === "open" ? "" : "warned"}>{queueWord(queue, isServed(queue.queue))}</td>
              <td><Failed queue={queue} /></td>
              <td>{queue.counts.waiting || ""}</td>
              <td>{queue.counts.ready ? <><StateIcon state="ready" kind="statuses" size={12} /> {queue.counts.ready}</> : ""}</td>
              <td>{running(queue) > 0 && <><StateIcon state="running" kind="statuses" size={12} /> {running(queue)}</>}</td>
              <td>{queue.oldest_ready_seconds !== null && durationText(Math.round(queue.oldest_ready_seconds))}</td>
              <td className="muted">{settingsText(queue)}</td>
              <td className="row-buttons">{may && <QueueButtons queue={queue} ask={(what) => setAsking({ what, queue })} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {asking !== null && <Asked asking={asking} close={() => setAsking(null)} />}
    </div>
  );
}

/** A link to the failed tasks. Where older ones were not counted, 0 is no good news either. */
function Failed({ queue: { queue, failed, failed_more: more } }: { queue: QueueFacts }) {
  if (failed === 0 && !more) return null;
  const count = `${failed}${more ? "+" : ""}`;
  return (
    <Link to="/tasks" search={{ queue, status: "failed" }} className={failed > 0 ? "bad-figure" : "muted"} aria-label={`${count} failed in ${queue}`} title={`Show the failed tasks of ${queue}${more ? "; only the newest failed tasks of all queues are counted, so this queue may have more" : ""}`}>
      <StateIcon state="failed" kind="statuses" size={12} /> {count}
    </Link>
  );
}

function QueueButtons({ queue, ask }: { queue: QueueFacts; ask: (what: Deed) => void }) {
  return (
    <>
      {queue.paused ? <Button onClick={() => ask("resume")}>Resume</Button> : <Button look="quiet" onClick={() => ask("pause")}>Pause</Button>}
      <Button look="quiet" title="Limits, rates, aging, lease" onClick={() => ask("settings")}>Settings</Button>
      {waiting(queue) > 0 && <Button look="risky" title="Cancel all waiting tasks; running tasks continue" onClick={() => ask("empty")}>Empty</Button>}
    </>
  );
}

function Asked({ asking, close }: { asking: NonNullable<Asking>; close: () => void }) {
  const { what, queue } = asking;
  const path = `/queues/${inPath(queue.queue)}`;
  const props = { stale: ["store"], onClose: close };
  if (what === "settings") return <QueueSettings queue={queue} onClose={close} />;
  if (what === "empty") {
    const count = Math.min(waiting(queue), CANCEL_MAX);
    const cancel = () => post("/tasks/cancel", { filter: { queue: queue.queue, status: ["waiting", "ready"] }, count_max: CANCEL_MAX });
    return (
      <Confirm {...props} title={`Empty ${queue.queue}`} button={`Cancel ${count} waiting`} danger act={cancel}>
        <p>This cancels {countText(count, "waiting task")}, and all tasks that need them. Running tasks ({running(queue)}) continue to their end.{waiting(queue) > CANCEL_MAX && ` The queue has ${waiting(queue)}, and at most ${CANCEL_MAX} are cancelled at once: repeat this for the others.`}</p>
        <p className="muted">To let the queue drain and keep its waiting tasks for later, pause it instead.</p>
      </Confirm>
    );
  }
  if (what === "pause") {
    return (
      <Confirm {...props} title={`Pause ${queue.queue}`} button="Pause" act={() => post(`${path}/pause`)}>
        <p>No worker gets a task of this queue until it is resumed. Running tasks ({running(queue)}) continue to their end; {countText(waiting(queue), "task")} will wait.</p>
      </Confirm>
    );
  }
  return <Confirm {...props} title={`Resume ${queue.queue}`} button="Resume" act={() => post(`${path}/resume`)}><p>Workers get tasks of this queue again; {queue.counts.ready ?? 0} are ready.</p></Confirm>;
}

/** What is set, and of the limit of the whole queue how much is used. */
export function settingsText(queue: QueueFacts): string {
  const limits = queue.limits.flatMap((limit) => {
    const key = limit.key === "" ? "" : `${limit.key}: `;
    const use = limit.key === "" && running(queue) > 0 ? ` (${running(queue)} used)` : "";
    return [limit.concurrency_max !== null ? `${key}at most ${limit.concurrency_max} at once${use}` : "", limit.rate_max !== null ? `${key}${limit.rate_max} per ${durationText(limit.rate_seconds).replace(/ 0 s$/, "")}` : ""];
  });
  return [...limits, queue.aging ? "aging" : "", queue.fair ? "fair" : "", queue.lease_seconds !== USUAL_LEASE_SECONDS ? `lease ${durationText(queue.lease_seconds)}` : ""].filter(Boolean).join(", ");
}
