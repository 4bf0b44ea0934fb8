/** Home: which workflows run, cycle by cycle, what needs action first; or every run as a list. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useDeferredValue, useEffect, useMemo, useRef } from "react";
import { useConnection } from "../../api/connection";
import { useFollowing } from "../../api/follow";
import { gridQuery } from "../../api/queries";
import type { GridRun } from "../../api/types";
import { useShortcut } from "../../shell/shortcuts";
import { FilterField } from "../../ui/FilterField";
import { Button, Empty, Failure, Loading } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { countText } from "../../ui/quantities";
import { StateIcon } from "../../ui/StateIcon";
import { countedTitle, doubtfulTitle, useTitle } from "../../ui/title";
import { RunList } from "../RunsPage";
import { isOver, RUN_STATES, runFilter, urgency } from "../runOrder";
import { useAddress } from "../useAddress";
import { useAlarms } from "./alarms";
import { needsAction, teamsOf } from "./cells";
import { goToAlarm } from "./goToAlarm";
import { RunGrid } from "./RunGrid";
import { SavedViews } from "./SavedViews";
import { useWall } from "./wall";
import "./home.css";

/** Those that need action first, then those that are late; of the others as the server has them. */
function order(run: GridRun): number {
  const usual = urgency(run, undefined);
  if (run.cause !== null) return Math.min(3, usual);
  return run.late !== undefined && !isOver(run) ? Math.min(3.5, usual) : usual;
}

export function HomePage() {
  useFollowing("run", ["runs"]);
  const [address, change] = useAddress();
  const name = address.name ?? "";
  const status = address.status ?? "";
  const wall = address.wall === "1";
  const isList = address.as === "list" && !wall;
  const { data, error, refetch } = useQuery(gridQuery(useDeferredValue(runFilter(name).problem === "" ? name : ""), status));
  const runs = useMemo(() => data && [...data.runs].sort((a, b) => order(a) - order(b)), [data]);
  const alarms = useAlarms(runs);
  const alarming = useAlarming(runs, data?.counts);
  useTitle(useConnection() === "lost" ? doubtfulTitle("Runs") : countedTitle("Runs", alarming));
  useWall(wall);
  const filter = useRef<HTMLInputElement>(null);
  useShortcut("filter", () => filter.current?.focus(), !wall);
  useShortcut("next failure", () => goToAlarm(1));
  useShortcut("previous failure", () => goToAlarm(-1));
  useShortcut("close", () => change({ wall: "" }), wall);
  const nothing = data !== undefined && Object.keys(data.counts).length === 0;
  return (
    <div className={wall ? "home-page wall" : "home-page"}>
      <div className="page-head">
        <h1>Runs</h1>
        {alarming > 0 && <span className="chip alarm">{alarming} need{alarming === 1 ? "s" : ""} action</span>}
        {wall ? <WallSign leave={() => change({ wall: "" })} /> : (
          <>
            <div className="view-toggles" role="group" aria-label="Show runs as">
              <button type="button" className="button" aria-pressed={!isList} onClick={() => change({ as: "" })}>Grid</button>
              <button type="button" className="button" aria-pressed={isList} onClick={() => change({ as: "list" })}>List</button>
            </div>
            <FilterField input={filter} placeholder="Filter: tide*:stalled" label="Filter runs" value={name} change={(text) => change({ name: text })} problem={runFilter(name).problem} />
            <Team name={name} runs={data?.runs ?? []} choose={(next) => change({ name: next })} />
            <div className="home-tools">
              <Button look="quiet" aria-pressed={alarms.on} title="A browser notification when a run stalls or fails while this tab is hidden" onClick={alarms.toggle}>Notify me</Button>
              <Button look="quiet" className="wall-button" title="Large cells and nothing else, for a screen on a wall; Escape leaves it" onClick={() => change({ wall: "1", as: "" })}>Wall screen</Button>
              <SavedViews />
            </div>
          </>
        )}
      </div>
      {!wall && data !== undefined && !nothing && <StatusChips counts={data.counts} chosen={status} choose={(next) => change({ status: next })} />}
      {nothing ? <NoRuns /> : isList ? <RunList name={name} status={status} /> : <Grid runs={runs} error={error} retry={() => void refetch()} wall={wall} leftOut={data?.left_out ?? 0} asked={name !== "" || status !== ""} />}
    </div>
  );
}

/** Only where names of workflows have teams before them. */
function Team({ name, runs, choose }: { name: string; runs: readonly GridRun[]; choose: (name: string) => void }) {
  const chosen = /^([^*?/]+)\/\*$/.exec(name)?.[1] ?? "";
  const found = teamsOf(runs);
  const teams = chosen === "" || found.includes(chosen) ? found : [chosen, ...found];
  if (teams.length === 0) return null;
  return (
    <select aria-label="Team" value={chosen} onChange={(event) => choose(event.target.value === "" ? "" : `${event.target.value}/*`)}>
      <option value="">all teams</option>
      {teams.map((team) => <option key={team} value={team}>{plain(team)}</option>)}
    </select>
  );
}

/** All that stalled or failed, whatever is filtered, and runs on the screen that go on beside a failure. */
function useAlarming(runs: readonly GridRun[] | undefined, counts: Readonly<Record<string, number>> | undefined): number {
  const beside = (runs ?? []).filter((run) => needsAction(run) && run.status !== "stalled" && run.status !== "error").length;
  return (counts?.stalled ?? 0) + (counts?.error ?? 0) + beside;
}

const LATER_RUN = /\/run([2-9]|\d\d+)$/; // of a workflow that has an older run, unless it was deleted

function Grid({ runs, error, retry, wall, leftOut, asked }: { runs: readonly GridRun[] | undefined; error: unknown; retry: () => void; wall: boolean; leftOut: number; asked: boolean }) {
  if (runs === undefined) return error !== null ? <Failure error={error} retry={retry} /> : <Loading what="runs" />;
  if (runs.length === 0 && asked) return <Empty title="No run matches">Change the filter, or look at the <b>List</b>: the grid shows only the newest run of each workflow, and all runs that have not ended.</Empty>;
  return (
    <>
      <RunGrid runs={runs} wall={wall} />
      {!wall && runs.some((run) => LATER_RUN.test(run.name)) && <p className="muted left-out">Older runs that have ended are in the <b>List</b>.</p>}
      {leftOut > 0 && <p className="muted left-out">{countText(leftOut, "more run")} not shown: filter by name or status to see {leftOut === 1 ? "it" : "them"}.</p>}
    </>
  );
}

function StatusChips({ counts, chosen, choose }: { counts: Readonly<Record<string, number>>; chosen: string; choose: (status: string) => void }) {
  const on = chosen.split(",").filter(Boolean);
  const shown = RUN_STATES.filter((status) => (counts[status] ?? 0) > 0 || on.includes(status));
  const toggle = (status: string) => choose((on.includes(status) ? on.filter((one) => one !== status) : [...on, status]).join(","));
  return (
    <div className="status-chips" role="group" aria-label="Statuses">
      {shown.map((status) => (
        <button key={status} type="button" className="chip state-chip" aria-pressed={on.includes(status)} onClick={() => toggle(status)}>
          <StateIcon state={status} kind="runs" size={13} />{status} <b>{counts[status] ?? 0}</b>
        </button>
      ))}
    </div>
  );
}

/** Whether what stands on the wall is what is so now. */
function WallSign({ leave }: { leave: () => void }) {
  const connection = useConnection();
  useEffect(() => window.scrollTo(0, 0), []);
  return (
    <>
      <span className="wall-sign muted" role="status">{connection === "live" ? "live" : connection === "lost" ? "reconnecting: what you see may be old" : "connecting"}</span>
      <Button look="quiet" className="wall-leave" onClick={leave}>Leave wall screen</Button>
    </>
  );
}

function NoRuns() {
  return (
    <Empty title="Nothing has run yet">
      <p>Make an example in a new folder and run it:</p>
      <pre>{`tidewheel init NAME\ntidewheel run NAME --server ${location.origin}`}</pre>
      <p>Or here: <Link to="/workflows">Register a workflow</Link>, and request a run of it.</p>
    </Empty>
  );
}
