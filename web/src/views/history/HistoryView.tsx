/** The run as it was: a slider back through everything that changed it, as a list or as a graph. */
import { useMemo, type KeyboardEvent } from "react";
import { batchAt, PastRows, type PastDocument } from "../../api/past";
import { RunMoment } from "../../api/runLive";
import { useViewOption } from "../../pages/run/useRunPage";
import { useShortcut } from "../../shell/shortcuts";
import { Button, Empty, Failure, Loading } from "../../ui/parts";
import { StateWord } from "../../ui/StateIcon";
import { Ago, At } from "../../ui/time";
import { say } from "../../ui/toasts";
import { VIEWS } from "../registry";
import { LinkHere, Slider, TimeField } from "./controls";
import { PastTasks } from "./PastTasks";
import { Story } from "./Story";
import { PACES, useMoment, type Pace } from "./useMoment";
import "./history.css";

const FAR = 10; // batches, with Shift or a page key
const Graph = VIEWS.find((view) => view.id === "graph")?.View;

export function HistoryView() {
  const moment = useMoment();
  const { run, now, batch, past, go, playing } = moment;
  const [as, setAs] = useViewOption("history", "as", "list");
  useShortcut("batch back", () => go(batch - 1));
  useShortcut("batch on", () => go(batch + 1));
  useShortcut("play", moment.play);
  if (now === 0) return <Empty title="Nothing has happened yet">The history begins when a scheduler starts the run.</Empty>;
  return (
    <div className="history-view" onKeyDown={(event) => hear(event, batch, now, go)}>
      <div className="view-bar">
        <Button look="quiet" aria-label="To the beginning" title="To the beginning (Home)" disabled={batch === 0} onClick={() => go(0)}>|◀</Button>
        <Button look="quiet" aria-label="One batch back" title="One batch back (←, [)" disabled={batch === 0} onClick={() => go(batch - 1)}>◀</Button>
        <Button look={playing ? "primary" : "plain"} aria-label={playing ? "Pause" : "Play"} title="Play batch by batch (v p)" onClick={moment.play}>{playing ? "❚❚" : "Play"}</Button>
        <Button look="quiet" aria-label="One batch forward" title="One batch forward (→, ])" disabled={batch >= now} onClick={() => go(batch + 1)}>▶</Button>
        <Slider batch={batch} last={now} onHold={moment.hold} />
        <Button aria-pressed={moment.follows} title="The run as it is now, live (End)" onClick={() => go(now)}>Now</Button>
        <label className="muted">pace <select value={moment.pace} aria-label="Batches per second" onChange={(event) => moment.setPace(Number(event.target.value) as Pace)}>{Object.keys(PACES).map((one) => <option key={one} value={one}>{one} / s</option>)}</select></label>
        <div className="view-toggles" role="group" aria-label="Shown as">
          <Button aria-pressed={as === "list"} onClick={() => setAs("list")}>List</Button>
          <Button aria-pressed={as === "graph"} onClick={() => setAs("graph")}>Graph</Button>
        </div>
        <TimeField onGo={(at) => void batchAt(run, at).then(go, (problem: unknown) => say(problem instanceof Error ? problem.message : String(problem), true))} />
        <LinkHere batch={batch} />
        {past && <Moment past={past} follows={moment.follows} quiet={playing} />}
      </div>
      {moment.error !== null && past === undefined && <Failure error={moment.error} retry={() => void moment.refetch()} />}
      {past === undefined && moment.error === null && <Loading what="the past" />}
      {past && (
        <div className="history-body" aria-busy={moment.stale}>
          {as === "graph" ? <PastGraph past={past} /> : <PastTasks past={past} />}
          <Story past={past} onGo={go} />
        </div>
      )}
    </div>
  );
}

/** The arrows move through time, wherever in the view somebody is, unless it writes or chooses there. */
function hear(event: KeyboardEvent, batch: number, now: number, go: (batch: number) => void): void {
  const { target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || target instanceof HTMLSelectElement) return;
  if (target instanceof HTMLInputElement && target.type !== "checkbox" && target.type !== "range") return;
  const far = event.shiftKey ? FAR : 1;
  const places: Record<string, number> = { ArrowLeft: batch - far, ArrowRight: batch + far, Home: 0, End: now };
  const to = places[event.key];
  // A slider of something else, such as that of the graph, keeps its keys.
  if (to === undefined || (target instanceof HTMLInputElement && target.type === "range" && target.name !== "batch")) return;
  event.preventDefault();
  go(Math.max(0, to));
}

/** The view of the graph, with the rows of the moment instead of the live ones. */
function PastGraph({ past }: { past: PastDocument }) {
  const rows = useMemo(() => new PastRows(past), [past]);
  if (Graph === undefined || past.batch === 0) return <Empty title="The run had not begun">Move the slider to see what happened later.</Empty>;
  return <section className="past-graph" aria-label="Graph as it was"><RunMoment rows={rows}><Graph /></RunMoment></section>;
}

function Moment({ past, follows, quiet }: { past: PastDocument; follows: boolean; quiet: boolean }) {
  return (
    <span className="history-moment" {...(quiet ? {} : { role: "status" })}>
      <StateWord state={past.status} kind="runs" />
      <span className="muted"><At at={past.at} /> · <Ago at={past.at} />{follows ? "" : "; the task panel shows the present"}</span>
    </span>
  );
}
