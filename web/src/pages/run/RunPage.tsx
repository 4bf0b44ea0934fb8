/** One run: its state above, views side by side, the selected task beside them. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect } from "react";
import { ActingProvider, useActing } from "../../acting/Acting";
import { useConnection } from "../../api/connection";
import { factsQuery } from "../../api/queries";
import { RunLiveProvider, useLiveOf, useLiveStore } from "../../api/runLive";
import { TaskPanel } from "../../panel/TaskPanel";
import { useShortcut } from "../../shell/shortcuts";
import { ErrorBoundary } from "../../ui/ErrorBoundary";
import { Empty, Failure, Loading } from "../../ui/parts";
import { doubtfulTitle, runTitle, useTitle } from "../../ui/title";
import { VIEWS } from "../../views/registry";
import { BulkBar } from "./BulkBar";
import { FilterBar } from "./FilterBar";
import { Panes, ViewTabs } from "./Panes";
import { RunHeader } from "./RunHeader";
import { TaskKeys } from "./TaskKeys";
import { TicksProvider } from "./ticks";
import { useRunPage } from "./useRunPage";
import "./run.css";

export function RunPage() {
  const { run, views } = useRunPage();
  return (
    <RunLiveProvider run={run} key={run}>
      <ActingProvider run={run} draws={views.includes("graph")} takes>
        <TicksProvider><Frame /></TicksProvider>
      </ActingProvider>
    </RunLiveProvider>
  );
}

/** Its status is that of now, also in a tab that nobody sees; without an answer of the server it has none. */
function useRunTitle(run: string): void {
  const heard = useLiveOf((state) => state.run?.status ?? "");
  const { data: facts } = useQuery(factsQuery(run));
  const connection = useConnection();
  useTitle(connection === "lost" ? doubtfulTitle(run) : runTitle(run, connection === "asleep" ? (facts?.status ?? heard) : heard));
}

function Frame() {
  const { run, views, selected, select } = useRunPage();
  const phase = useLiveOf((live) => live.phase);
  const problem = useLiveOf((live) => live.problem);
  const live = useLiveStore();
  const { docked, leave } = useActing();
  useRunTitle(run);
  useShortcut("close", () => select(null), selected !== null);
  useEffect(() => {
    if (phase === "deleted") leave();
  }, [phase]); // eslint-disable-line react-hooks/exhaustive-deps -- once, when it is gone
  if (phase === "deleted") {
    return <Empty page title={`${run} was deleted`}>Its tasks and logs are gone. <Link to="/runs">Go to all runs</Link>.</Empty>;
  }
  if (phase === "failed" && problem?.status === 404) {
    return <Empty page title={`There is no run ${run}`}>The run was deleted, or it never existed. <Link to="/runs">Go to all runs</Link>.</Empty>;
  }
  if (phase === "failed") return <Failure error={problem} retry={() => void live.load()} />;
  if (phase === "loading") return <Loading what={run} />;
  const shown = VIEWS.filter((view) => views.includes(view.id));
  return (
    <div className="run-page">
      <TaskKeys />
      <RunHeader />
      <FilterBar><ViewTabs /></FilterBar>
      <div className={selected === null && !docked ? "run-frame" : "run-frame with-panel"}>
        <div className="run-views" data-count={shown.length}>
          <Panes views={shown} />
          <BulkBar />
        </div>
        {selected !== null && (
          <ErrorBoundary what="The task" key={selected}><TaskPanel id={selected} /></ErrorBoundary>
        )}
      </div>
    </div>
  );
}
