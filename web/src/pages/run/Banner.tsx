/** What keeps a run, the reason before the button: failures that are alike in one line, then each other cause. */
import { useActing } from "../../acting/Acting";
import { actionText } from "../../acting/verbs";
import { useMayAct } from "../../api/runLive";
import { shortId, shownId } from "../../api/shown";
import type { ErrorGroup, RunFacts, RunSummary } from "../../api/types";
import { Button } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { Ago, At, Due } from "../../ui/time";
import { isGivenUp } from "../runOrder";
import { useRunPage, useShowLog, useShowTasks } from "./useRunPage";

export function Banner({ run, summary }: { run: RunFacts; summary: RunSummary }) {
  const { groups, causes, causes_count: count, stall } = summary;
  const ended = run.status === "completed" || run.status === "stopped";
  const told = new Set(groups.flatMap((group) => group.ids));
  const others = ended ? [] : causes.filter((cause) => !told.has(cause.id));
  if (groups.length + others.length === 0) return null;
  const more = ended ? 0 : count - told.size - others.length;
  return (
    <div className={ended ? "run-causes ended" : "run-causes"} role={ended ? "note" : "alert"} {...(ended ? { "aria-label": "What failed" } : {})}>
      <b>{run.status === "stalled" ? "Stalled" : ended ? "Failed in this run" : "Needs action"}</b>
      {run.status === "stalled" && stall && <span className="muted"> since <At at={stall.since} /> (<Ago at={stall.since} />){stall.until && <>; stall timeout <Due at={stall.until} /></>}{isGivenUp(run) && "; no scheduler drives this run now: Continue, or a trigger, resumes it"}</span>}
      <ul>
        {groups.map((group) => <GroupLine key={`${group.log} ${group.text}`} group={group} ended={ended} />)}
        {others.map((cause) => <CauseLine key={cause.id} cause={cause} />)}
        {more > 0 && <li className="muted">and {more} more</li>}
      </ul>
    </div>
  );
}

/** "63 failed alike …", with one log, one button for all of them, and the way to the list. */
function GroupLine({ group, ended }: { group: ErrorGroup; ended: boolean }) {
  const { select, selected } = useRunPage();
  const { act } = useActing();
  const showLog = useShowLog();
  const showTasks = useShowTasks();
  const may = useMayAct();
  const one = group.count === 1;
  const first = shownId(group.log);
  const short = shortId(group.log);
  const text = plain(group.text);
  // The panel of a task has the buttons for it.
  const here = one && selected === group.log;
  return (
    <li>
      {one && text.startsWith(first) ? <><button type="button" className="link" title={first} onClick={() => select(group.log)}>{short}</button><span>{text.slice(first.length)}</span></> : <span>{text}</span>}
      <span className="cause-actions">
        {may && !here && <Button title={ended ? "Reopens the run" : one ? `Trigger ${first}` : ""} onClick={() => group.actions.slice(0, 1).forEach((action) => act(action))}>{one ? `Trigger ${short}` : `Trigger all ${group.count}`}</Button>}
        {group.state === "failed" && <button type="button" className="link" aria-label={`Log of ${first}`} title={`What ${first} wrote`} onClick={() => showLog(group.log, "err", "")}>log{one ? "" : ` of ${short}`}</button>}
        {!one && <button type="button" className="link" onClick={() => showTasks(group.name, group.state)}>show them</button>}
      </span>
    </li>
  );
}

function CauseLine({ cause }: { cause: RunSummary["causes"][number] }) {
  const { select, selected } = useRunPage();
  const { act } = useActing();
  const may = useMayAct();
  const [reason] = cause.reasons;
  return (
    <li>
      <button type="button" className="link" title={cause.id} onClick={() => select(cause.id)}>{shortId(cause.id)}</button>
      <span> {plain(reason?.text.replace(`${shownId(cause.id)} `, "") ?? cause.state)}</span>
      {may && cause.id !== selected && reason?.actions.slice(0, 1).map((action) => (
        <span key={action.verb} className="cause-actions"><Button title={actionText(action, true)} onClick={() => act(action)}>{actionText(action)}</Button></span>
      ))}
    </li>
  );
}

