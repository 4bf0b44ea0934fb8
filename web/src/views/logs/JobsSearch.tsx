/** Where else a text stands: a search in the logs of all jobs of a run, the newest job first. */
import { useEffect, useState, useSyncExternalStore, type ReactNode } from "react";
import type { JobLogHit } from "../../api/generated/log_lines";
import { LEVELS } from "../../api/generated/log_lines";
import { inPath } from "../../api/http";
import { shownId } from "../../api/shown";
import { useChange, useShowLog, useViewOption } from "../../pages/run/useRunPage";
import { Button, Empty } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { PLAIN } from "./ansi";
import { marked, textsOf } from "./finding";
import { levelClass } from "./levels";
import { sizeText } from "./LogLines";
import { writePicked } from "./rows";
import { HITS_MAX, StepSearch, wantedQuery, type SearchState, type Wanted } from "./search";

type JobsWanted = Omit<Wanted, "level"> & { tasks: string };

// The last one is kept, so that the way back from a line does not search anew.
let last: { key: string; search: StepSearch<JobLogHit> } | null = null;

function searchFor(run: string, { tasks, ...wanted }: JobsWanted): StepSearch<JobLogHit> {
  const key = JSON.stringify([run, tasks, wanted]);
  if (last?.key === key && last.search.snapshot().done) return last.search;
  const query = { ...wantedQuery({ ...wanted, level: "" }), ...(tasks === "" ? {} : { task: tasks }) };
  const search = new StepSearch<JobLogHit>((cursor) => `/runs/${inPath(run)}/logs/search?${new URLSearchParams({ ...query, ...cursor }).toString()}`);
  last = { key, search };
  search.start();
  return search;
}

export function JobsSearch({ run, whose }: { run: string; whose: ReactNode }) {
  const [text] = useViewOption("logs", "find", "");
  const [match] = useViewOption("logs", "match", "glob");
  const [tasks] = useViewOption("logs", "tasks", "");
  const [withCase] = useViewOption("logs", "case", "no");
  const wanted: JobsWanted = { text, tasks, match: match === "text" ? "text" : "glob", case: withCase === "yes" };
  const key = JSON.stringify(wanted);
  return (
    <>
      <div className="view-bar">{whose}</div>
      <Asking key={`form ${key}`} wanted={wanted} />
      {text.trim() === ""
        ? <Empty title="Search what all jobs of this run wrote">The latest job comes first. Tasks are chosen by name, or by point and name, with * for any characters.</Empty>
        : <Results key={key} run={run} wanted={wanted} />}
    </>
  );
}

function Asking({ wanted }: { wanted: JobsWanted }) {
  const change = useChange();
  const [form, setForm] = useState(wanted);
  const submit = () => change({ "logs.find": form.text, "logs.tasks": form.tasks, "logs.match": form.match === "glob" ? "" : form.match, "logs.case": form.case ? "yes" : "" });
  return (
    <form className="logs-tools" onSubmit={(event) => { event.preventDefault(); submit(); }} aria-label="Search the logs of all jobs">
      <input className="input logs-find" type="search" placeholder="Text" aria-label="Text to search for" value={form.text} maxLength={500} onChange={(event) => setForm({ ...form, text: event.target.value })} />
      <input className="input" placeholder="Tasks: model*, 3/*" aria-label="Only in tasks" value={form.tasks} maxLength={200} onChange={(event) => setForm({ ...form, tasks: event.target.value })} />
      <label title="If not ticked, * matches only the character *"><input type="checkbox" checked={form.match === "glob"} onChange={(event) => setForm({ ...form, match: event.target.checked ? "glob" : "text" })} /> * stands for any characters</label>
      <label><input type="checkbox" checked={form.case} onChange={(event) => setForm({ ...form, case: event.target.checked })} /> match case</label>
      <Button type="submit" look="primary" disabled={form.text.trim() === ""}>Search</Button>
    </form>
  );
}

function Results({ run, wanted }: { run: string; wanted: JobsWanted }) {
  const [search] = useState(() => searchFor(run, wanted));
  useEffect(() => () => { if (!search.snapshot().done) search.stop(); }, [search]);
  const state = useSyncExternalStore(search.subscribe, search.snapshot);
  const texts = textsOf(wanted.text, wanted.match);
  return (
    <>
      <p className="logs-found" role="status">{stateText(state)}{state.running && !state.done && <> <Button look="quiet" onClick={() => search.stop()}>Stop</Button></>}</p>
      {state.problem !== null && <p className="logs-found error-words" role="alert">{plain(state.problem.message)}</p>}
      <ul className="logs-hits" aria-label="Lines that were found">
        {state.hits.map((hit) => <Found key={`${hit.id}/${hit.submit}.${hit.attempt}${hit.file}${hit.line}`} hit={hit} texts={texts} withCase={wanted.case} />)}
      </ul>
    </>
  );
}

function Found({ hit, texts, withCase }: { hit: JobLogHit; texts: readonly string[]; withCase: boolean }) {
  const show = useShowLog();
  const rank = hit.level === null ? null : LEVELS.indexOf(hit.level as (typeof LEVELS)[number]);
  const open = () => show(hit.id, hit.file, `${hit.submit}.${hit.attempt}`, writePicked(hit.id, hit.file, { from: hit.line, to: hit.line }));
  return (
    <li>
      <button type="button" className={`logs-hit${levelClass(rank)}`} onClick={open}>
        <span className="logs-where">{shownId(hit.id)} {hit.file}{hit.submit > 1 ? `, submission ${hit.submit}` : ""}{hit.attempt > 1 ? `, attempt ${hit.attempt}` : ""}: line {hit.line}</span>
        <code>{marked([{ text: plain(hit.text), style: PLAIN }], texts, withCase).map((mark, place) => (mark.found ? <mark key={place}>{mark.text}</mark> : mark.text))}</code>
      </button>
    </li>
  );
}

function stateText({ hits, running, done, full, files, bytes, missing, at }: SearchState<JobLogHit>): string {
  const tasks = new Set(hits.map((hit) => hit.id)).size;
  const found = hits.length === 0 ? (done ? "Nothing found" : "Nothing yet") : `${hits.length} ${hits.length === 1 ? "line" : "lines"} in ${tasks} ${tasks === 1 ? "task" : "tasks"}`;
  const read = `${files} ${files === 1 ? "log" : "logs"} searched, ${sizeText(bytes)}`;
  const lost = missing === 0 ? "" : ` The logs of ${missing} ${missing === 1 ? "attempt" : "attempts"} are not on this server, and were not searched.`;
  const where = full ? ` There are more than ${HITS_MAX}: search for a longer text, or in fewer tasks.` : done ? "" : running ? ` Searching${at === null ? "" : ` ${shownId(at)}`} …` : " Stopped before the end.";
  return `${found}. ${read}.${lost}${where}`;
}
