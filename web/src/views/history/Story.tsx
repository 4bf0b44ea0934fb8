/** What happened around the moment: batch by batch, with what people asked for between them. */
import { useEffect, useMemo, useRef } from "react";
import type { PastBatch, PastChange, PastCommand, PastDocument } from "../../api/past";
import { shortId } from "../../api/shown";
import { useRunPage } from "../../pages/run/useRunPage";
import { plain } from "../../ui/plain";
import { StateIcon, StateWord } from "../../ui/StateIcon";
import { At } from "../../ui/time";
import { BATCH_WORDS } from "./controls";
import { causesOf, commandText, storyOf } from "./happenings";

const SHOWN_MAX = 8; // of one batch
const CAUSES_MAX = 4;

export function Story({ past, onGo }: { past: PastDocument; onGo: (batch: number) => void }) {
  const story = useMemo(() => storyOf(past), [past]);
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    const here = box.current?.querySelector<HTMLElement>("[aria-current]");
    if (box.current && here) box.current.scrollTop = here.offsetTop - box.current.clientHeight / 3;
  }, [past]);
  return (
    <section className="story" aria-label="What happened around this batch" ref={box}>
      <header>
        <h2>What happened around this batch</h2>
        <p className="muted">One step of the slider is one batch: {BATCH_WORDS}.</p>
      </header>
      <ol>
        {story.map((one) => (one.kind === "command"
          ? <Asked key={one.key} command={one.command} />
          : <Batch key={one.key} batch={one.batch} here={one.batch.batch === past.batch ? past : null} later={one.batch.batch > past.batch} onGo={onGo} />))}
      </ol>
    </section>
  );
}

function Batch({ batch, here, later, onGo }: { batch: PastBatch; here: PastDocument | null; later: boolean; onGo: (batch: number) => void }) {
  const { select } = useRunPage();
  const tasks = here === null ? batch.tasks : here.changed;
  const more = tasks.length - SHOWN_MAX;
  const was = new Map(here?.changed.map((one) => [one.id, one.before]));
  return (
    <li className={here ? "here" : later ? "later" : ""} {...(here ? { "aria-current": "step" } : {})}>
      <div className="story-head">
        <button type="button" className="link" onClick={() => onGo(batch.batch)}>batch {batch.batch}</button> <At at={batch.at} />
        {batch.status !== null && <StateWord state={batch.status} kind="runs" />}
      </div>
      {here && <Because causes={causesOf(here)} />}
      <ul className="plain-list">
        {tasks.slice(0, SHOWN_MAX).map((task) => (
          <li key={task.id}><StateIcon state={task.state} size={13} /> <button type="button" className="link mono" title={task.id} onClick={() => select(task.id)}>{shortId(task.id)}</button> <span className="muted">{changeText(was.get(task.id), task)}</span></li>
        ))}
        {more > 0 && <li className="faint">and {more} more</li>}
        {tasks.length === 0 && <li className="faint">no task</li>}
      </ul>
    </li>
  );
}

function Because({ causes }: { causes: readonly string[] }) {
  const more = causes.length - CAUSES_MAX;
  return <p className="story-cause"><b>Because</b> {plain(causes.slice(0, CAUSES_MAX).join("; "))}{more > 0 && `, and ${more} more`}</p>;
}

function changeText(before: string | undefined, { state, remarks }: Pick<PastChange, "state" | "remarks">): string {
  const after = [state, ...remarks].join(", ");
  if (before === undefined || before === state) return after;
  return before === "future" ? `new: ${after}` : `${before} → ${after}`;
}

function Asked({ command }: { command: PastCommand }) {
  return (
    <li className="asked">
      <div className="story-head"><b>{plain(command.who)}</b> <At at={command.at} /></div>
      <code>{plain(commandText(command))}</code>
      {command.refused !== null && <p className="error-text">refused: {plain(command.refused)}</p>}
    </li>
  );
}
