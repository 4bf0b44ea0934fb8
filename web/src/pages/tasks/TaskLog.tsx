/** What an attempt of a task wrote: the end, the part around a line that was found, and a search in all of it. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { LogHit } from "../../api/generated/log_lines";
import { Problem } from "../../api/http";
import { storedLogPath, storedLogQuery } from "../../api/storeQueries";
import type { StoredTask } from "../../api/storeTypes";
import { Button, Failure, Loading } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { piecesOf, PLAIN } from "../../views/logs/ansi";
import { textsOf } from "../../views/logs/finding";
import { sizeText } from "../../views/logs/LogLines";
import { LogText } from "../../views/logs/LogText";
import { foundText, LEVEL_OPTIONS } from "../../views/logs/LogTools";
import { useLogSearch } from "../../views/logs/useLogSearch";
import "../../views/logs/logs.css";
import { isOver } from "./again";

const STREAMS = ["out", "err"] as const;
const SHOWN_MAX = 200; // lines that were found

export function TaskLog({ task }: { task: StoredTask }) {
  const [stream, setStream] = useState<string>("out");
  const [chosen, setChosen] = useState(0);
  const [text, setText] = useState("");
  const [withCase, setWithCase] = useState(false);
  const [level, setLevel] = useState("debug");
  const [from, setFrom] = useState<LogHit | null>(null);
  const attempt = chosen === 0 ? task.attempt : chosen;
  const { data: part, error, refetch } = useQuery(storedLogQuery(task.id, stream, attempt, from?.offset ?? null, !isOver(task)));
  const least = level === "debug" ? "" : level;
  const search = useLogSearch(storedLogPath(task.id, stream, "/search", { attempt }), text === "" && least === "" ? null : { text, match: "text", case: withCase, level: least }, part?.size ?? 0);
  const change = (act: () => void) => { act(); setFrom(null); };
  return (
    <section className="logs-view task-log" aria-label="Log">
      <h3>Log</h3>
      <div className="task-log-tools">
        <div className="view-toggles" role="group" aria-label="File">
          {STREAMS.map((one) => <button key={one} type="button" className="button" aria-pressed={one === stream} onClick={() => change(() => setStream(one))}>{one}</button>)}
        </div>
        {task.attempt > 1 && (
          <select aria-label="Attempt" value={chosen} onChange={(event) => change(() => setChosen(Number(event.target.value)))}>
            <option value={0}>the latest attempt</option>
            {Array.from({ length: task.attempt - 1 }, (_, place) => task.attempt - 1 - place).map((one) => <option key={one} value={one}>attempt {one}</option>)}
          </select>
        )}
        <span className="logs-field">
          <input className="input" type="search" placeholder="Search the log" aria-label="Search in the log" maxLength={500} value={text} onChange={(event) => setText(event.target.value)} />
          <Button look="quiet" aria-pressed={withCase} title="Distinguish upper and lower case" aria-label="Match case" onClick={() => setWithCase(!withCase)}>Aa</Button>
        </span>
        <select aria-label="Level" value={level} onChange={(event) => setLevel(event.target.value)}>{LEVEL_OPTIONS.map(([value, word]) => <option key={value} value={value}>{word}</option>)}</select>
      </div>
      {search !== null && (
        <>
          <p className="muted" role="status">{plain(foundText(search, null))}{search.hits.length > SHOWN_MAX && `; the first ${SHOWN_MAX} are listed`}</p>
          <ul className="task-log-hits" aria-label="Lines that were found">
            {search.hits.slice(0, SHOWN_MAX).map((hit) => (
              <li key={hit.offset}><button type="button" aria-pressed={hit.offset === from?.offset} onClick={() => setFrom(hit)}><span className="muted">{hit.line}</span> <code><LogText text={hit.text} start={PLAIN} texts={textsOf(text, "text")} withCase={withCase} /></code></button></li>
            ))}
          </ul>
        </>
      )}
      {error !== null ? (isMissing(error) ? <p className="muted">This server has no log of this attempt: the job has written nothing, or its log is only on the machine of the worker.</p> : <Failure error={error} retry={() => void refetch()} />)
        : part === undefined ? <Loading what="the log" />
        : part.size === 0 ? <p className="muted">Nothing has been written to {stream}.</p>
        : (
          <>
            <p className="muted">{from === null ? (part.offset === 0 ? sizeText(part.size) : `Only the end of this log (${sizeText(part.size)}) is shown; a search covers all of it`) : <>From line {from.line} on <Button look="quiet" onClick={() => setFrom(null)}>Show the end</Button></>}</p>
            <pre role="log" aria-live="off" aria-label={`${stream} of attempt ${attempt}`} tabIndex={0}><Lines text={part.text} texts={textsOf(text, "text")} withCase={withCase} /></pre>
          </>
        )}
    </section>
  );
}

function Lines({ text, texts, withCase }: { text: string; texts: readonly string[]; withCase: boolean }) {
  let start = PLAIN;
  return text.replace(/\n$/, "").split("\n").map((line, place) => {
    const begun = start;
    start = piecesOf(line, begun).end;
    return <span key={place} className="task-log-line"><LogText text={line} start={begun} texts={texts} withCase={withCase} />{"\n"}</span>;
  });
}

const isMissing = (error: Error): boolean => error instanceof Problem && error.status === 404;
