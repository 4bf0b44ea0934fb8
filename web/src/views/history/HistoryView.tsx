/** The run as it was: a slider back through everything that changed it. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { batchAt, pastQuery, type PastDocument } from "../../api/past";
import { useLive } from "../../api/runLive";
import { useRunPage, useViewOption } from "../../pages/run/useRunPage";
import { useShortcut } from "../../shell/shortcuts";
import { Button, Empty, Failure, Loading } from "../../ui/parts";
import { StateWord } from "../../ui/StateIcon";
import { Ago, At } from "../../ui/time";
import { say } from "../../ui/toasts";
import { PastTasks } from "./PastTasks";
import { Story } from "./Story";
import "./history.css";

const SETTLE_MS = 180; // the slider rests this long before the past is asked for

export function HistoryView() {
  const { run } = useRunPage();
  const { batch: now } = useLive();
  const [wanted, setWanted] = useViewOption("history", "batch", "");
  const batch = wanted === "" ? now : Math.min(now, Math.max(0, Math.floor(Number(wanted)) || 0));
  const { data: past, error, refetch, isPlaceholderData } = useQuery(pastQuery(run, batch));
  const go = (to: number) => setWanted(to >= now ? "" : String(Math.max(0, to)));
  useShortcut("[", "History: one batch back", () => go(batch - 1));
  useShortcut("]", "History: one batch on", () => go(batch + 1));
  if (now === 0) return <Empty title="Nothing has happened yet">The history begins when a scheduler begins with the run.</Empty>;
  return (
    <div className="history-view">
      <div className="view-bar">
        <Button look="quiet" aria-label="To the beginning" title="To the beginning" disabled={batch === 0} onClick={() => go(0)}>|◀</Button>
        <Button look="quiet" aria-label="One batch back" title="One batch back ([)" disabled={batch === 0} onClick={() => go(batch - 1)}>◀</Button>
        <Slider batch={batch} last={now} onChange={go} />
        <Button look="quiet" aria-label="One batch on" title="One batch on (])" disabled={batch >= now} onClick={() => go(batch + 1)}>▶</Button>
        <Button aria-pressed={wanted === ""} title="As it is now, and as it goes on" onClick={() => go(now)}>Now</Button>
        <TimeField onGo={(at) => void batchAt(run, at).then(go, (problem: unknown) => say(problem instanceof Error ? problem.message : String(problem), true))} />
        {past && <Moment past={past} now={wanted === ""} />}
      </div>
      {error !== null && past === undefined && <Failure error={error} retry={() => void refetch()} />}
      {past === undefined && error === null && <Loading what="the past" />}
      {past && (
        <div className={isPlaceholderData ? "history-body stale" : "history-body"}>
          <PastTasks past={past} />
          <Story past={past} onGo={go} />
        </div>
      )}
    </div>
  );
}

/** Follows the hand at once; the past is asked for when the hand rests. */
function Slider({ batch, last, onChange }: { batch: number; last: number; onChange: (batch: number) => void }) {
  const [held, setHeld] = useState<number | null>(null);
  useEffect(() => {
    if (held === null) return;
    const timer = window.setTimeout(() => { onChange(held); setHeld(null); }, SETTLE_MS);
    return () => window.clearTimeout(timer);
  }, [held]); // eslint-disable-line react-hooks/exhaustive-deps -- only a move of the hand begins the wait
  const shown = held ?? batch;
  return (
    <label className="history-slider">
      <input type="range" min="0" max={last} value={shown} aria-label="Batch" aria-valuetext={`batch ${shown} of ${last}`} onChange={(event) => setHeld(Number(event.target.value))} />
      <span className="mono nowrap">{shown} / {last}</span>
    </label>
  );
}

function TimeField({ onGo }: { onGo: (at: Date) => void }) {
  const [text, setText] = useState("");
  const time = new Date(text);
  const known = !Number.isNaN(time.getTime());
  return (
    <form className="history-time" onSubmit={(event) => { event.preventDefault(); if (known) onGo(time); }}>
      <input className="input" type="datetime-local" step="1" aria-label="As it was at" value={text} onChange={(event) => setText(event.target.value)} />
      {known && <button type="submit" className="button">Go there</button>}
    </form>
  );
}

function Moment({ past, now }: { past: PastDocument; now: boolean }) {
  return (
    <span className="history-moment" role="status">
      <StateWord state={past.status} kind="runs" />
      <span className="muted"><At at={past.at} /> · <Ago at={past.at} />{now ? "" : "; the task panel shows the present"}</span>
    </span>
  );
}
