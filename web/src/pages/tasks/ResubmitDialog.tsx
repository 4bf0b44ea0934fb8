/** Tasks that have ended, submitted again: first the list of what would happen to each. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Resubmitted } from "../../api/storeTypes";
import { useDeed } from "../../ui/deed";
import { Dialog } from "../../ui/Dialog";
import { Button, Failure, Loading } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { countText } from "../../ui/quantities";
import { say } from "../../ui/toasts";
import { planOf, RESUBMIT_MAX, submitAgain, tryAgain, type Plan } from "./again";

const LISTED_MAX = 200;

export function ResubmitDialog({ ids, onClose, onDone }: { ids: readonly string[]; onClose: () => void; onDone: (made: readonly Resubmitted[]) => void }) {
  const [withChildren, setWithChildren] = useState(false);
  const [offered, setOffered] = useState(0); // kept while they are included
  const queries = useQueryClient();
  const asked = { ids: ids.slice(0, RESUBMIT_MAX), with_children: withChildren };
  const { data, error, isFetching } = useQuery({
    queryKey: ["resubmit", asked],
    queryFn: ({ signal }) => tryAgain(asked, signal),
    staleTime: 0, gcTime: 0, retry: false,
  });
  const plan = data && planOf(data);
  const children = Math.max(offered, plan?.children ?? 0);
  const acting = useDeed({
    mutationFn: () => submitAgain(asked),
    onSuccess: (told) => {
      const { made, refused } = planOf(told);
      say(`${countText(made.length, "task")} submitted again${refused.length > 0 ? `, ${refused.length} refused` : ""}`);
      void queries.invalidateQueries({ queryKey: ["store"] });
      onDone(told);
      onClose();
    },
  });
  const title = ids.length === 1 ? `Submit ${ids[0]} again` : `Submit ${ids.length} tasks again`;
  return (
    <Dialog title={title} onClose={onClose} className="wide">
      <h2>{title}</h2>
      <p>Each task is submitted as a new task with the same command, spec, settings and needs. The old tasks do not change; a task that was already submitted again is not submitted a second time.</p>
      {children > 0 && (
        <label className="tick"><input type="checkbox" checked={withChildren} onChange={(event) => { setOffered(children); setWithChildren(event.target.checked); }} /> Also submit tasks that were cancelled because they need one of these tasks{withChildren ? "" : ` (${children} directly)`}</label>
      )}
      {error !== null && <Failure error={error} />}
      {acting.error !== null && <Failure error={acting.error} />}
      {plan === undefined && error === null && <Loading what="what would happen" />}
      {plan && <Planned plan={plan} tasks={data} />}
      <div className="dialog-foot">
        <Button onClick={onClose}>Cancel</Button>
        <Button look="primary" data-focus disabled={acting.isPending || isFetching || !plan || plan.made.length === 0} onClick={() => acting.mutate()}>
          {plan && plan.made.length !== 1 ? `Submit ${plan.made.length} again` : "Submit again"}
        </Button>
      </div>
    </Dialog>
  );
}

function Planned({ plan, tasks }: { plan: Plan; tasks: readonly Resubmitted[] }) {
  const counts = [`${plan.made.length} to submit`, plan.before.length > 0 && `${plan.before.length} already submitted again`, plan.refused.length > 0 && `${plan.refused.length} refused`];
  const shown = [...plan.refused, ...plan.made, ...plan.before].slice(0, LISTED_MAX);
  return (
    <>
      <p role="status"><b>{counts.filter(Boolean).join(", ")}</b></p>
      <div className="resubmit-list">
        <table className="plain-table">
          <caption className="visually-hidden">What would happen</caption>
          <thead><tr><th>Task</th><th>New task</th><th>Needs</th></tr></thead>
          <tbody>{shown.map((one) => <Line key={one.again_of} one={one} />)}</tbody>
        </table>
      </div>
      {tasks.length > shown.length && <p className="muted">and {tasks.length - shown.length} more</p>}
    </>
  );
}

function Line({ one }: { one: Resubmitted }) {
  return (
    <tr className={one.refused === null ? "" : "refused"}>
      <td className="mono">{plain(one.again_of)}</td>
      <td>{one.refused !== null ? <>refused: {plain(one.refused)}</> : one.created ? <span className="mono">{plain(one.name ?? one.id ?? "")}</span> : <span className="muted">already submitted again: {plain(one.id ?? "")}</span>}</td>
      <td className="mono muted">{one.refused === null ? plain(one.needs.join(", ")) : ""}</td>
    </tr>
  );
}
