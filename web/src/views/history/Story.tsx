/** What happened around the moment: batch by batch, with what people asked for between them. */
import { useEffect, useMemo, useRef } from "react";
import type { PastBatch, PastCommand, PastDocument } from "../../api/past";
import { useRunPage } from "../../pages/run/useRunPage";
import { plain } from "../../ui/plain";
import { StateIcon, StateWord } from "../../ui/StateIcon";
import { At } from "../../ui/time";
import { commandText, storyOf } from "./happenings";

const SHOWN_MAX = 8; // of one batch

export function Story({ past, onGo }: { past: PastDocument; onGo: (batch: number) => void }) {
  const story = useMemo(() => storyOf(past), [past]);
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    const here = box.current?.querySelector<HTMLElement>("[aria-current]");
    if (box.current && here) box.current.scrollTop = here.offsetTop - box.current.clientHeight / 3;
  }, [past]);
  return (
    <section className="story" aria-label="What happened around it" ref={box}>
      <h2>What happened around it</h2>
      <ol>
        {story.map((one) => (one.kind === "command"
          ? <Asked key={one.key} command={one.command} />
          : <Batch key={one.key} batch={one.batch} here={one.batch.batch === past.batch} later={one.batch.batch > past.batch} onGo={onGo} />))}
      </ol>
    </section>
  );
}

function Batch({ batch, here, later, onGo }: { batch: PastBatch; here: boolean; later: boolean; onGo: (batch: number) => void }) {
  const { select } = useRunPage();
  const more = batch.tasks.length - SHOWN_MAX;
  return (
    <li className={here ? "here" : later ? "later" : ""} {...(here ? { "aria-current": "step" } : {})}>
      <div className="story-head">
        <button type="button" className="link" onClick={() => onGo(batch.batch)}>batch {batch.batch}</button> <At at={batch.at} />
        {batch.status !== null && <StateWord state={batch.status} kind="runs" />}
      </div>
      <ul className="plain-list">
        {batch.tasks.slice(0, SHOWN_MAX).map((task) => (
          <li key={task.id}><StateIcon state={task.state} size={13} /> <button type="button" className="link mono" onClick={() => select(task.id)}>{task.id}</button> <span className="muted">{[task.state, ...task.remarks].join(", ")}</span></li>
        ))}
        {more > 0 && <li className="faint">and {more} more</li>}
        {batch.tasks.length === 0 && <li className="faint">no task</li>}
      </ul>
    </li>
  );
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
