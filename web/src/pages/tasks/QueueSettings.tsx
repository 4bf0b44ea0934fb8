/** How a queue behaves: pause, limits, rates, aging, turns, lease; each with what it means and what is used of it now. */
import { useQueryClient } from "@tanstack/react-query";
import { useId, useState, type SyntheticEvent } from "react";
import { inPath, patch } from "../../api/http";
import type { QueueFacts } from "../../api/storeTypes";
import { useDeed } from "../../ui/deed";
import { Dialog } from "../../ui/Dialog";
import { Button, Failure } from "../../ui/parts";
import { say } from "../../ui/toasts";
import { limitsOf, limitTexts, NO_LIMIT, USUAL_LEASE_SECONDS, wrongIn, type LimitTexts } from "./queueSettings";

const NEW_QUEUE: QueueFacts = { queue: "", paused: false, aging: false, fair: false, fence_kill: false, lease_seconds: USUAL_LEASE_SECONDS, limits: [], counts: {}, oldest_ready_seconds: null, failed: 0, failed_more: false };

/** Without a queue, of one that is named here: it can be set before anything is in it. */
export function QueueSettings({ queue: given, onClose }: { queue: QueueFacts | null; onClose: () => void }) {
  const queue = given ?? NEW_QUEUE;
  const [name, setName] = useState(queue.queue);
  const [flags, setFlags] = useState({ paused: queue.paused, aging: queue.aging, fair: queue.fair });
  const [lease, setLease] = useState(String(queue.lease_seconds));
  const [rows, setRows] = useState(() => limitTexts(queue));
  const queries = useQueryClient();
  const wrong = rows.map((row, place) => wrongIn(row, place === 0));
  const leaseWrong = Number(lease) > 0 ? "" : "Give a number of seconds greater than 0.";
  const isWrong = name.trim() === "" || leaseWrong !== "" || wrong.some((one) => Object.keys(one).length > 0);
  const saving = useDeed({
    mutationFn: () => patch<QueueFacts>(`/queues/${inPath(name.trim())}`, { ...flags, ...(Number(lease) === queue.lease_seconds ? {} : { lease_seconds: Number(lease) }), limits: limitsOf(rows) }),
    onSuccess: () => {
      say(`${name.trim()}: settings saved`);
      void queries.invalidateQueries({ queryKey: ["store"] });
      onClose();
    },
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (!isWrong) saving.mutate();
  };
  const change = (place: number, part: Partial<LimitTexts>) => setRows(rows.map((row, at) => (at === place ? { ...row, ...part } : row)));
  const running = (queue.counts.running ?? 0) + (queue.counts.cancelling ?? 0);
  const title = given === null ? "Configure a queue" : `Settings of ${queue.queue}`;
  return (
    <Dialog title={title} onClose={onClose}>
      <form className="queue-settings" onSubmit={submit}>
        <h2>{title}</h2>
        {given === null && <Field label="Queue" says="You can give a new name: a queue can be configured or paused before its first task." value={name} onChange={setName} wrong="" focus />}
        {given !== null && <p className="muted">Now: {running} running, {queue.counts.ready ?? 0} ready, {queue.counts.waiting ?? 0} waiting for other tasks.</p>}
        <Flag label="Paused" says="No worker gets tasks of this queue; running tasks continue." is={flags.paused} onChange={(paused) => setFlags({ ...flags, paused })} />
        <fieldset>
          <legend>The whole queue</legend>
          <LimitRow row={rows[0] ?? NO_LIMIT} wrong={wrong[0] ?? {}} change={(part) => change(0, part)} use={given === null ? "" : ` Now running: ${running}.`} />
        </fieldset>
        <fieldset>
          <legend>By limit key</legend>
          <p className="muted">Tasks with the same limit key, such as a licence or an instrument, share one limit. The limit of the key * applies separately to each key that is not listed.</p>
          {rows.slice(1).map((row, at) => (
            <div key={at} className="limit-row">
              <Field label="Key" value={row.key} onChange={(key) => change(at + 1, { key })} wrong={wrong[at + 1]?.key ?? ""} />
              <LimitRow row={row} wrong={wrong[at + 1] ?? {}} change={(part) => change(at + 1, part)} use="" />
              <Button look="quiet" aria-label={`Remove the limit of ${row.key || "this key"}`} onClick={() => setRows(rows.filter((_, place) => place !== at + 1))}>✕</Button>
            </div>
          ))}
          <Button look="quiet" onClick={() => setRows([...rows, NO_LIMIT])}>Add a key</Button>
        </fieldset>
        <Flag label="Aging" says="The priority of a ready task rises by 1 every second, up to 255, so that it does not wait for ever behind tasks of higher priority." is={flags.aging} onChange={(aging) => setFlags({ ...flags, aging })} />
        <Flag label="Fair" says="Limit keys take turns, so that a key with many tasks does not delay the others." is={flags.fair} onChange={(fair) => setFlags({ ...flags, fair })} />
        <Field label="Lease in seconds" says="After this time without a heartbeat, the worker loses its task, and another worker gets it." value={lease} onChange={setLease} wrong={leaseWrong} />
        {saving.error !== null && <Failure error={saving.error} />}
        <div className="dialog-foot">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" disabled={saving.isPending || isWrong}>Save</Button>
        </div>
      </form>
    </Dialog>
  );
}

function LimitRow({ row, wrong, change, use }: { row: LimitTexts; wrong: Partial<Record<keyof LimitTexts, string>>; change: (part: Partial<LimitTexts>) => void; use: string }) {
  return (
    <div className="limit-fields">
      <Field label="Maximum at once" says={`Empty: no limit.${use}`} value={row.most} onChange={(most) => change({ most })} wrong={wrong.most ?? ""} />
      <Field label="Maximum starts" says="Empty: no limit." value={row.rate} onChange={(rate) => change({ rate })} wrong={wrong.rate ?? ""} />
      <Field label="in how many seconds" value={row.seconds} onChange={(seconds) => change({ seconds })} wrong={wrong.seconds ?? ""} />
    </div>
  );
}

function Field({ label, says = "", value, onChange, wrong, focus = false }: { label: string; says?: string; value: string; onChange: (text: string) => void; wrong: string; focus?: boolean }) {
  const about = useId();
  return (
    <label className="setting-field">
      <span>{label}</span>
      <input className="input" aria-label={label} value={value} aria-invalid={wrong !== ""} aria-describedby={about} {...(focus ? { "data-focus": true } : {})} onChange={(event) => onChange(event.target.value)} />
      <small id={about} className={wrong === "" ? "muted" : "wrong"}>{wrong || says}</small>
    </label>
  );
}

function Flag({ label, says, is, onChange }: { label: string; says: string; is: boolean; onChange: (is: boolean) => void }) {
  return <label className="setting-flag"><input type="checkbox" checked={is} onChange={(event) => onChange(event.target.checked)} /> <b>{label}</b> <span className="muted">{says}</span></label>;
}
