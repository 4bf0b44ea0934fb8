/** The status of a run, and that its jobs are not real where they are not: wherever a run is named with its status. */
import type { RunFacts } from "../api/types";
import { StateWord } from "../ui/StateIcon";

export function RunStatus({ run }: { run: Pick<RunFacts, "status" | "mode"> }) {
  return (
    <>
      <StateWord state={run.status} kind="runs" />
      {isPlayed(run.mode) && <span className="chip" title="The jobs of this run do no real work">{run.mode} mode</span>}
    </>
  );
}

const isPlayed = (mode: string | undefined): boolean => mode === "simulation" || mode === "dummy" || mode === "skip";
