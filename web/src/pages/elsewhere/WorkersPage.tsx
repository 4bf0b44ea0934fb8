/** Workers: where they are, what they hold of what they offer, and when they were last seen. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { workersQuery } from "../../api/storeQueries";
import type { WorkerFacts } from "../../api/storeTypes";
import { Button, Empty, Failure, Loading } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { bytesText, countText } from "../../ui/quantities";
import { Ago, useNow } from "../../ui/time";
import { useAddress } from "../useAddress";
import { isActive, workerText, workerWord } from "./workers";
import "./elsewhere.css";

export function WorkersPage() {
  const [search, change] = useAddress();
  const all = search.all === "true";
  const now = useNow();
  const { data: workers, error, refetch } = useQuery(workersQuery(all));
  if (error !== null && workers === undefined) return <Failure error={error} retry={() => void refetch()} />;
  if (workers === undefined) return <Loading what="workers" />;
  const live = workers.filter((one) => isActive(one, now));
  const [held, slots] = [live.reduce((sum, one) => sum + one.leases, 0), live.reduce((sum, one) => sum + one.slots, 0)];
  return (
    <div className="plain-page">
      <div className="page-head">
        <h1>Workers</h1>
        <span className="muted">{live.length} active, {held} of {countText(slots, "slot")} in use</span>
        <Button look="quiet" className="page-end" aria-pressed={all} onClick={() => change({ all: all ? "" : "true" })}>Show stopped workers</Button>
      </div>
      {workers.length === 0 ? (
        <Empty title="There is no worker">Nothing runs without a worker. Start one on any host:<pre>tidewheel worker --server {location.origin}</pre></Empty>
      ) : (
        <ul className="worker-list">{workers.map((worker) => <li key={worker.id}><WorkerCard worker={worker} /></li>)}</ul>
      )}
    </div>
  );
}

function WorkerCard({ worker }: { worker: WorkerFacts }) {
  const now = useNow();
  const word = workerWord(worker, now);
  const part = worker.slots > 0 ? worker.leases / worker.slots : 0;
  const { cpu, memory_bytes, gpu, labels } = worker.capacity;
  return (
    <article className={`worker-card card ${word}`} aria-label={worker.name}>
      <div className="worker-title"><b>{plain(worker.name)}</b> <span className="faint mono">{worker.id}</span><span className={`worker-word ${word}`}>{workerText(worker, now)}</span></div>
      <div className="load" role="meter" aria-label="Slots in use" aria-valuemin={0} aria-valuemax={worker.slots} aria-valuenow={worker.leases}><i style={{ width: `${Math.min(100, 100 * part)}%` }} /></div>
      <div className="worker-line">
        <Link to="/tasks" search={{ worker: worker.id, status: "running,cancelling" }}>{worker.leases} of {countText(worker.slots, "slot")}</Link>
        <span className="muted">seen <Ago at={worker.stopped_at ?? worker.seen_at} /></span>
      </div>
      {worker.trouble && <p className="worker-trouble">{plain(worker.trouble)}</p>}
      <dl className="facts">
        <dt>host</dt><dd>{worker.host} <span className="faint">process {worker.pid}</span></dd>
        <dt>queues</dt><dd>{worker.queues.join(", ")}</dd>
        <dt>offers</dt><dd>{[cpu ? `${cpu} CPU` : "", memory_bytes ? bytesText(memory_bytes) : "", gpu ? `${gpu} GPU` : "", ...labels].filter(Boolean).join(", ") || "no resources"}</dd>
        <dt>runs</dt><dd>{[worker.commands ? "commands" : "", worker.handlers === null ? "any handler" : worker.handlers.length > 0 ? `handlers ${worker.handlers.join(", ")}` : ""].filter(Boolean).join(", ") || "nothing"}</dd>
        <dt>since</dt><dd><Ago at={worker.registered_at} /></dd>
      </dl>
    </article>
  );
}
