/** The parts of the panel: what a task waits for, what it made, how often it ran. */
import { Link } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";
import { useTaskRow } from "../api/runLive";
import { isOfStages, shortId } from "../api/shown";
import type { Arrow, Atom, OutputFacts, Submission, TaskDocument } from "../api/types";
import { useRunPage, useShowLog } from "../pages/run/useRunPage";
import { endingOf } from "../ui/endings";
import { plain } from "../ui/plain";
import { countText } from "../ui/quantities";
import { StateIcon, StateWord } from "../ui/StateIcon";
import { At, Took } from "../ui/time";

const SHOWN = 20;
const MARKS = { true: ["✔", "met"], open: ["○", "not yet"], lost: ["✖", "lost: this output will not be made"], "not taken": ["·", "not taken"] } as const;

export function Prerequisites({ arrows }: { arrows: Arrow[] }) {
  if (arrows.length === 0) return <p className="muted">It waits for no other {isOfStages() ? "stage" : "task"}.</p>;
  return (
    <ul className="arrows">
      <Some of={arrows} isMet={(arrow) => arrow.satisfied}>
        {(arrow) => (
          <li key={arrow.text} className={arrow.satisfied ? "met" : "unmet"}>
            {arrow.atoms.length > 1 && arrow.atoms.length <= SHOWN && <code className="expression">{arrow.text}</code>}
            <ul className="atoms"><Some of={arrow.atoms} isMet={(atom) => atom.state === "true"}>{(atom) => <AtomLine key={atom.text} atom={atom} />}</Some></ul>
          </li>
        )}
      </Some>
    </ul>
  );
}

/** What is not met comes first; of a thousand parents only some are drawn at once. */
function Some<T>({ of, isMet, children }: { of: readonly T[]; isMet: (one: T) => boolean; children: (one: T) => ReactNode }) {
  const [count, setCount] = useState(SHOWN);
  if (of.length <= SHOWN) return <>{of.map(children)}</>;
  const open = of.filter((one) => !isMet(one));
  const inOrder = [...open, ...of.filter(isMet)];
  return (
    <>
      <li className="plain-line muted small">{of.length - open.length} of {of.length} are met{open.length > 0 ? "; those that are not met are listed first" : ""}</li>
      {inOrder.slice(0, count).map(children)}
      {count < inOrder.length && <li className="plain-line"><button type="button" className="link" onClick={() => setCount(count + 200)}>{inOrder.length - count} more</button></li>}
    </>
  );
}

function AtomLine({ atom }: { atom: Atom }) {
  const { select } = useRunPage();
  const row = useTaskRow(atom.id);
  const [mark, says] = MARKS[atom.state];
  // The state of the parent as it is now, not as it was when the panel was read.
  const parent = row === undefined ? atom.parent : [row.state, ...row.remarks].join(", ");
  return (
    <li className={`atom ${atom.state.replace(" ", "-")}`}>
      <span className="mark" role="img" aria-label={says} title={says}>{mark}</span>
      {atom.members.length > 0 ? <span className="mono" title={atom.id}>{shortId(atom.id)}</span> : <button type="button" className="link mono" title={atom.id} onClick={() => select(atom.id)}>{shortId(atom.id)}</button>}
      <span className="muted">{atom.output}{atom.by_hand ? ", by hand" : ""}{atom.before_start ? ", before the start point" : ""}</span>
      <span className="parent">{row && <StateIcon state={row.state} size={13} />}{parent}</span>
      {atom.members.length > 0 && (
        <details className="members">
          <summary>{countText(atom.members.length, "member")}</summary>
          {atom.members.map((member) => (
            <div key={member.id}><span className="mark">{member.made ? "✔" : "○"}</span><button type="button" className="link mono" title={member.id} onClick={() => select(member.id)}>{shortId(member.id)}</button> <span className="muted">{member.state}</span></div>
          ))}
        </details>
      )}
    </li>
  );
}

export function Xtriggers({ task }: { task: TaskDocument }) {
  return (
    <ul className="plain-list">
      {task.xtriggers.map((one) => (
        <li key={one.label} className={one.by_hand ? "by-hand" : one.satisfied ? "met" : ""}>
          <span className="mark" role="img" aria-label={one.by_hand ? "satisfied by hand" : one.satisfied ? "satisfied" : "not yet"}>{one.by_hand ? "✎" : one.satisfied ? "✔" : "○"}</span>
          {" "}<code>{one.label}</code> <span className="muted">{one.call}{one.by_hand ? ", satisfied by hand" : ""}</span> {one.at && <At at={one.at} />}
        </li>
      ))}
    </ul>
  );
}

export function Outputs({ outputs, completion }: { outputs: OutputFacts[]; completion: string }) {
  return (
    <>
      <ul className="plain-list outputs">
        {outputs.map((one) => (
          <li key={one.output} className={`${one.made ? "made" : ""}${one.by_hand ? " by-hand" : ""}`}>
            <span className="mark" role="img" aria-label={one.by_hand ? "made by hand" : one.made ? "made" : "not made"}>{one.by_hand ? "✎" : one.made ? "✔" : "○"}</span>
            <span className="output-name">{one.output}{one.message !== one.output && <span className="faint"> {plain(one.message)}</span>}{one.required && <span className="faint" title="The task is complete only with this output"> required</span>}</span>
            <span className="made-by"><span className="muted">{madeText(one)}</span> <At at={one.at} /></span>
          </li>
        ))}
      </ul>
      <p className="faint small">complete if: <code>{completion}</code></p>
    </>
  );
}

/** By whom, and in which flows unless that is the first alone. */
export function madeText({ by, flows, made }: Pick<OutputFacts, "by" | "flows" | "made">): string {
  const later = made && flows.length > 0 && flows.join() !== "1" && !isOfStages();
  return [plain(by), later ? `flow ${flows.join(", ")}` : ""].filter(Boolean).join(", ");
}

const TEXT_MAX = 240;

/** What a job wrote may be of any length: its beginning, and the rest for whoever wants it. */
function LongText({ text }: { text: string }) {
  const [whole, setWhole] = useState(false);
  const said = plain(text);
  if (said.length <= TEXT_MAX || whole) return <span className="long-text">{said}</span>;
  return <><span className="long-text">{said.slice(0, TEXT_MAX)}…</span> <button type="button" className="link" onClick={() => setWhole(true)}>show all {said.length} characters</button></>;
}

/** To what a submission wrote, in the view of logs beside what is shown. */
export function LogLinks({ id, one, isLatest, words = "" }: { id: string; one: Submission; isLatest: boolean; words?: string }) {
  const showLog = useShowLog();
  const last = one.attempts.at(-1);
  if (last === undefined) return null;
  // The latest is not named: whoever runs the task again sees what comes.
  const attempt = isLatest ? "" : `${one.submit}.${last.attempt}`;
  return (
    <p className="submission-logs small">
      {words !== "" && <span className="muted">{words}:</span>}
      {(["out", "err"] as const).map((file) => <button key={file} type="button" className="link" aria-label={words === "" ? `log: ${file} of submission ${one.submit}` : `log: ${file}`} onClick={() => showLog(id, file, attempt)}>log: {file}</button>)}
    </p>
  );
}

export function Submissions({ task }: { task: TaskDocument }) {
  if (task.submissions.length === 0) return <p className="muted">The task has not been submitted.</p>;
  return (
    <ol className="submissions">
      {[...task.submissions].reverse().map((one) => (
        <li key={one.submit}>
          <div className="submission-head">
            <StateIcon state={one.status} kind="statuses" size={14} /> <b>#{one.submit}</b> {one.status}
            {one.exit_status !== null && <span className="muted">exit {one.exit_status}</span>}
            <span className="end"><Took from={one.started_at} to={one.ended_at} /></span>
          </div>
          {one.error && <p className="error-text"><LongText text={one.error} /></p>}
          <dl className="facts">
            <dt>queued</dt><dd><At at={one.submitted_at} /></dd>
            {one.started_at && <><dt>began</dt><dd><At at={one.started_at} /></dd></>}
            {one.ended_at && <><dt>ended</dt><dd><At at={one.ended_at} /></dd></>}
            {one.worker && <><dt>worker</dt><dd>{one.worker}</dd></>}
          </dl>
          <LogLinks id={task.id} one={one} isLatest={one === task.submissions.at(-1)} />
          {one.attempts.length > 1 && one.attempts.map((attempt) => (
            <p key={attempt.attempt} className="small muted">attempt {attempt.attempt} on {attempt.worker}: {attempt.ended_by === null ? "running" : endingOf(attempt.ended_by).word} {plain(attempt.error ?? "")}</p>
          ))}
          {one.messages.length > 0 && (
            <ul className="plain-list small">{one.messages.slice(-5).map((message, place) => <li key={place}><At at={message.at} /> <LongText text={message.text} /></li>)}</ul>
          )}
        </li>
      ))}
    </ol>
  );
}

/** The runs of another workflow that the submissions of a task are. */
export function NestedRuns({ runs }: { runs: NonNullable<TaskDocument["nested"]> }) {
  return (
    <ul className="nested-runs">
      {[...runs].reverse().map((one) => (
        <li key={one.run}>
          <Link to="/runs/$run" params={{ run: one.run }} className="mono">{one.run}</Link>{" "}
          <StateWord state={one.status} kind="runs" />
          {one.reason !== "" && one.reason !== one.status && <p className="muted">{plain(one.reason)}</p>}
        </li>
      ))}
    </ul>
  );
}

export function Environment({ variables }: { variables: TaskDocument["environment"] }) {
  if (variables.length === 0) return <p className="muted">Its definition sets no variables.</p>;
  return (
    <dl className="facts environment">
      {variables.map((one) => (
        <div key={one.name} className="wide-fact"><dt className="mono">{one.name}</dt><dd className="mono"><LongText text={one.value} />{one.broadcast && <span className="chip" title="An operator set this variable with a broadcast">broadcast</span>}</dd></div>
      ))}
    </dl>
  );
}
