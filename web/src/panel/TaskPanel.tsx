/** Everything about one task: why it does not run and what would help come first. */
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useActing } from "../acting/Acting";
import { actionFor, actionText, taskVerbs } from "../acting/verbs";
import { taskQuery } from "../api/queries";
import { useEnded, useMayAct, useTaskRow } from "../api/runLive";
import { isOfStages, pointsAround, shortId, shownId } from "../api/shown";
import type { Action, Reason, TaskDocument } from "../api/types";
import { useRunPage, useViewOption } from "../pages/run/useRunPage";
import { keyOfVerb, withKey } from "../shell/keys";
import { FlowMarks } from "../ui/FlowMark";
import { Button, Failure, Loading } from "../ui/parts";
import { StateWord } from "../ui/StateIcon";
import { copyText } from "../ui/copy";
import { plain } from "../ui/plain";
import { isDated, shortPoint } from "../ui/points";
import { Due } from "../ui/time";
import { PANEL, useEntered } from "./entering";
import { Environment, LogLinks, NestedRuns, Outputs, Prerequisites, Submissions, Xtriggers } from "./sections";
import { UsagePlot } from "./UsagePlot";
import "./panel.css";

export function TaskPanel({ id }: { id: string }) {
  const { run, select } = useRunPage();
  const [fold, setFolded] = useViewOption("panel", "fold", "");
  const folded = fold !== ""; // where it lies over the views
  const row = useTaskRow(id);
  const { data: task, error, refetch } = useQuery(taskQuery(run, id));
  const state = row ?? task;
  const panel = useEntered(id);
  return (
    <aside ref={panel} id={PANEL} tabIndex={-1} data-of={id} className={folded ? "task-panel folded" : "task-panel"} aria-label={`${isOfStages() ? "Stage" : "Task"} ${shownId(id)}`}>
      <header>
        <div className="panel-title">
          <TaskTitle id={id} />
          <span className="panel-buttons">
            <Button look="quiet" className="fold-button" aria-expanded={!folded} onClick={() => setFolded(folded ? "" : "yes")}>{folded ? "▴ Unfold" : "▾ Fold"}</Button>
            <Button look="quiet" aria-label="Close the task" title={withKey("Close", "close")} onClick={() => select(null)}>✕</Button>
          </span>
        </div>
        {state && <StateWord state={state.state} remarks={state.remarks} />}
        {task?.title && <p className="muted">{plain(task.title)}</p>}
      </header>
      {error !== null && <Failure error={error} retry={() => void refetch()} />}
      {task === undefined && error === null && <Loading what={shownId(id)} />}
      {task && <Body task={task} verbs={<Verbs task={row ? { ...task, ...row } : task} />} />}
    </aside>
  );
}

/** The name first; of a point as much as tells it from the others of the run. Its whole id is what one copies. */
function TaskTitle({ id }: { id: string }) {
  const point = id.slice(0, id.indexOf("/"));
  if (isOfStages() || !isDated(point)) return <h2 title={id}>{shownId(id)}</h2>;
  return (
    <h2 title={id}>
      {id.slice(point.length + 1)} <small className="muted">{shortPoint(point, pointsAround())}</small>
      <Button look="quiet" className="copy-id" aria-label={`Copy ${id}`} title={`Copy ${id}`} onClick={() => void copyText(id, id)}><svg width="14" height="14" viewBox="0 0 16 16" aria-hidden><path d="M5.5 5.5V2.5h8v8h-3M2.5 5.5h8v8h-8z" fill="none" stroke="currentColor" strokeWidth="1.4" strokeLinejoin="round" /></svg></Button>
    </h2>
  );
}

function Verbs({ task }: { task: TaskDocument }) {
  const { act } = useActing();
  const may = useMayAct();
  const ended = useEnded();
  if (!may) return null;
  return (
    <div className="panel-verbs" role="group" aria-label="Actions">
      {taskVerbs(ended !== null).filter(({ fits }) => fits?.(task) ?? true).map(({ verb, button, says, danger }) => (
        <Button key={verb} title={tooltip(verb, ended === null ? says : `${says} Reopens the run, which is ${ended}.`)} aria-keyshortcuts={keyOfVerb(verb)?.keys} look={danger ? "risky" : "plain"} onClick={() => act(actionFor(verb, [task], ended !== null))}>{button}</Button>
      ))}
    </div>
  );
}

const tooltip = (verb: string, says: string): string => {
  const key = keyOfVerb(verb);
  return key === null ? says : withKey(says, key.id);
};

/** Why it does not run stands above what can be done about it. */
function Body({ task, verbs }: { task: TaskDocument; verbs: ReactNode }) {
  const stages = isOfStages();
  const running = ["preparing", "submitted", "running"].includes(task.state);
  const runs = task.nested ?? []; // a run in it may be stuck while the task itself is running, as may a job that no worker takes
  const stuck = (runs.length > 0 || task.state !== "running") && task.why.some((reason) => !reason.passes);
  return (
    <div className="panel-body">
      {(!running || stuck) && task.state !== "succeeded" && <Why reasons={task.why} task={task} />}
      {verbs}
      {runs.length > 0 && <Section title="Its runs" count={runs.length}><NestedRuns runs={runs} /></Section>}
      <Section title="Prerequisites" count={task.prerequisites.length}><Prerequisites arrows={task.prerequisites} /></Section>
      {task.xtriggers.length > 0 && <Section title="Xtriggers and timers"><Xtriggers task={task} /></Section>}
      <Section title="Outputs"><Outputs outputs={task.outputs} completion={task.completion} /></Section>
      <Section title="Submissions and attempts" count={task.submissions.length}><Submissions task={task} /></Section>
      <Section title="Resources used"><UsagePlot task={task} /></Section>
      <Section title="Environment" count={task.environment.length}><Environment variables={task.environment} /></Section>
      {task.suicide.length > 0 && <Section title="Removed if"><Prerequisites arrows={task.suicide} /></Section>}
      <Section title="About">
        <dl className="facts">
          {!stages && <><dt>flows</dt><dd>{task.flows.some((flow) => flow > 1) ? <FlowMarks flows={task.flows} /> : task.flows.join(", ") || "none"}</dd></>}
          {!stages && task.families.length > 0 && <><dt>families</dt><dd>{task.families.join(", ")}</dd></>}
          <dt>{stages ? "needed by" : "children"}</dt><dd><TaskLinks ids={task.children} /></dd>
          {task.description && <><dt>description</dt><dd>{plain(task.description)}</dd></>}
          {task.verdicts.map((verdict) => <div key={verdict.flow} className="wide-fact"><dt>{stages ? "verdict" : `flow ${verdict.flow}`}</dt><dd>{plain(verdict.text)}</dd></div>)}
        </dl>
      </Section>
    </div>
  );
}

export function TaskLinks({ ids }: { ids: readonly string[] }) {
  const { select } = useRunPage();
  if (ids.length === 0) return <span className="muted">none</span>;
  return <>{ids.map((id) => <button key={id} type="button" className="link mono spaced" title={id} onClick={() => select(id)}>{shortId(id)}</button>)}</>;
}

/** A trigger in a new flow of what has ended is no repair; what is for this task alone is among the verbs below. */
const isRepair = (action: Action, id: string): boolean => action.flow !== "new" && !(isFor(action, id) && (action.verb === "trigger" || (action.verb === "set" && !action.outputs?.length && !action.prerequisites?.length) || action.verb === "release"));

/** What its job said comes first: it is why the rest is so. */
function inOrder(reasons: readonly Reason[], error: string): Reason[] {
  const says = (reason: Reason) => error !== "" && reason.text.includes(error);
  return [...reasons.filter(says), ...reasons.filter((reason) => !says(reason))];
}

/** In a run of stages commands have the name alone. */
const isFor = ({ ids = [] }: Action, id: string): boolean => ids.length === 1 && (ids[0] === id || ids[0] === shownId(id));

function Why({ reasons, task }: { reasons: Reason[]; task: TaskDocument }) {
  const { act } = useActing();
  const may = useMayAct();
  const last = task.submissions.at(-1);
  if (reasons.length === 0) return null;
  return (
    <section className="why" aria-label="Why it does not run">
      <h3>Why it does not run</h3>
      <ul>
        {inOrder(reasons, last?.error ?? "").map((reason) => (
          <li key={reason.text} className={reason.passes ? "passes" : reason.needs_action ? "stays" : ""}>
            <p>{plain(reason.text)}</p>
            {(reason.passes || reason.needs_action) && <p className="muted">{reason.passes ? <>It clears on its own{reason.until ? <>, <Due at={reason.until} /></> : ""}.</> : "It needs action."}</p>}
            {may && reason.actions.filter((action) => isRepair(action, task.id)).map((action, place) => (
              <Button key={actionText(action)} look={reason.passes || place > 0 ? "plain" : "primary"} title={actionText(action, true)} onClick={() => act(action)}>{actionText(action)}</Button>
            ))}
          </li>
        ))}
      </ul>
      {last && <LogLinks id={task.id} one={last} isLatest words="What its last job wrote" />}
    </section>
  );
}

export function Section({ title, count, children }: { title: string; count?: number; children: ReactNode }) {
  return (
    <details className="section" open>
      <summary><h3>{title}{count !== undefined && <span className="faint"> {count}</span>}</h3></summary>
      {children}
    </details>
  );
}
