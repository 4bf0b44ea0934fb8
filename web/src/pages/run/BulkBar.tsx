/** One action on everything that is ticked, in whichever view. */
import { useMemo } from "react";
import { useActing } from "../../acting/Acting";
import { actionFor, taskVerbs } from "../../acting/verbs";
import { useEnded, useLiveOf, useLiveStore, useMayAct } from "../../api/runLive";
import { keyOfVerb } from "../../shell/keys";
import { Button } from "../../ui/parts";
import { useTicks } from "./ticks";

/** A task that has not come yet, as the graph shows some. */
export const FUTURE = { state: "future", remarks: [], in_pool: false, flows: [] };

export function BulkBar() {
  const { ticked } = useTicks();
  const { docked } = useActing();
  return useMayAct() && ticked.size > 0 && !docked ? <Bar /> : null;
}

function Bar() {
  const { ticked, clear } = useTicks();
  const { act } = useActing();
  const live = useLiveStore();
  const ended = useEnded();
  const all = useLiveOf((state) => state.rows);
  const rows = useMemo(() => [...ticked].map((id) => live.row(id) ?? { id, ...FUTURE }), [ticked, live, all]); // eslint-disable-line react-hooks/exhaustive-deps -- `all` is another one when a row is
  return (
    <div className="bulk-bar card" role="group" aria-label="Actions on ticked tasks">
      <b>{rows.length} ticked</b>
      {taskVerbs(ended !== null).map(({ verb, button, says, fits, danger }) => {
        const those = rows.filter((row) => fits?.(row) ?? true);
        const ids = those.map((row) => row.id);
        return (
          <Button key={verb} look={danger ? "risky" : "plain"} disabled={ids.length === 0} title={ids.length === rows.length ? says : `${says} Applies to ${ids.length} of the ticked tasks.`} aria-keyshortcuts={keyOfVerb(verb)?.keys} onClick={() => act(actionFor(verb, those, ended !== null), clear)}>
            {button}{ids.length < rows.length && ids.length > 0 ? ` (${ids.length})` : ""}
          </Button>
        );
      })}
      <Button look="quiet" onClick={clear}>Clear selection</Button>
    </div>
  );
}
