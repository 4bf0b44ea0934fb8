/** What can be done with a log: search in it, choose lines by level, go to a place, keep it as a file. */
import { useRef, useState, type KeyboardEvent } from "react";
import type { LogHit } from "../../api/generated/log_lines";
import { address } from "../../api/http";
import { useViewOption } from "../../pages/run/useRunPage";
import { withKey } from "../../shell/keys";
import { useShortcut } from "../../shell/shortcuts";
import { Button } from "../../ui/parts";
import { logPath, type LogPlace, type LogState } from "./follower";
import { sizeText } from "./LogLines";
import { HITS_MAX, type SearchState, type Wanted } from "./search";

export const LEVEL_OPTIONS = [["debug", "all levels"], ["info", "info and above"], ["warning", "warnings and errors"], ["error", "errors"], ["critical", "critical"]] as const;

interface LogToolsProps {
  place: LogPlace;
  state: LogState;
  level: string;
  search: SearchState<LogHit> | null;
  asked: Omit<Wanted, "level">;
  only: boolean;
  stick: boolean;
  current: number | null;
  setAsked: (asked: Omit<Wanted, "level">) => void;
  setOnly: (only: boolean) => void;
  step: (by: number) => void;
  goLine: (line: number) => void;
  goStart: () => void;
  goEnd: () => void;
}

export function LogTools(props: LogToolsProps) {
  const { place, state, level, search, asked, only, stick, setAsked, setOnly, step, goLine, goStart, goEnd } = props;
  const [wrap, setWrap] = useViewOption("logs", "wrap", "no");
  const [, setLevel] = useViewOption("logs", place.id === "" ? "run-level" : "level", place.id === "" ? "info" : "debug");
  const [line, setLine] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useShortcut("search log", () => field.current?.focus());
  const keys = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") { setAsked({ ...asked, text: "" }); event.currentTarget.closest(".logs-view")?.querySelector<HTMLElement>("[role=log]")?.focus(); }
  };
  const found = search?.hits.length ?? 0;
  return (
    <div className="logs-tools">
      <span className="logs-field">
        <input ref={field} className="input" type="search" placeholder={withKey("Search the log", "search log")} aria-label="Search in the log" value={asked.text} onChange={(event) => setAsked({ ...asked, text: event.target.value })} onKeyDown={keys} />
        <Button look="quiet" aria-pressed={asked.case} title="Distinguish upper and lower case" aria-label="Match case" onClick={() => setAsked({ ...asked, case: !asked.case })}>Aa</Button>
        <Button look="quiet" aria-pressed={asked.match === "glob"} title="A * in the text stands for any characters of a line" aria-label="A * stands for any characters" onClick={() => setAsked({ ...asked, match: asked.match === "glob" ? "text" : "glob" })}>*</Button>
      </span>
      {search !== null && (
        <>
          <span className="muted nowrap" role="status">{foundText(search, props.current)}</span>
          <Button look="quiet" aria-label="The previous line found" disabled={found === 0} onClick={() => step(-1)}>↑</Button>
          <Button look="quiet" aria-label="The next line found" disabled={found === 0} onClick={() => step(1)}>↓</Button>
          <label><input type="checkbox" checked={only} onChange={(event) => setOnly(event.target.checked)} /> only lines found</label>
        </>
      )}
      <select aria-label="Level" value={level} onChange={(event) => setLevel(event.target.value)}>
        {LEVEL_OPTIONS.map(([value, word]) => <option key={value} value={value}>{word}</option>)}
      </select>
      <label><input type="checkbox" checked={wrap === "yes"} onChange={(event) => setWrap(event.target.checked ? "yes" : "no")} /> wrap</label>
      <span className="logs-places">
        <form onSubmit={(event) => { event.preventDefault(); if (Number(line) >= 1) goLine(Math.floor(Number(line))); }}>
          <input className="input logs-line" inputMode="numeric" pattern="[0-9]*" placeholder="Line" aria-label="Go to line" value={line} onChange={(event) => setLine(event.target.value.replace(/\D/g, "").slice(0, 15))} />
        </form>
        <Button onClick={goStart}>Start of file</Button>
        <Button onClick={goEnd} disabled={stick}>{state.over ? "End of file" : "Follow ↓"}</Button>
        <a className="button plain" href={address(logPath(place, "/file"))} download>Download</a>
      </span>
      <span className="muted nowrap end">{sizeText(state.size)} · {state.over ? "the log is complete" : state.problem !== null ? "reconnecting" : stick ? "following" : "the log may grow"}</span>
    </div>
  );
}

export function foundText({ hits, running, done, full, part, problem }: SearchState<LogHit>, current: number | null): string {
  if (problem !== null && !problem.passes) return problem.message;
  const count = `${current === null ? "" : `${current + 1} of `}${hits.length} ${hits.length === 1 ? "line" : "lines"}`;
  if (full) return `${count}; there are more than ${HITS_MAX}`;
  if (running && !done) return `${hits.length === 0 ? "searching" : count}: ${Math.floor(100 * (part ?? 0))} %`;
  return hits.length === 0 ? "not found in this log" : count;
}
