/** One action on everything that is ticked. */
import { useMemo } from "react";
import { useActing } from "../../acting/Acting";
import { TASK_VERBS } from "../../acting/verbs";
import { useLiveStore } from "../../api/runLive";
import { useMay } from "../../api/session";
import type { TaskRow } from "../../api/types";
import { useTicks } from "../../pages/run/ticks";
import { Button } from "../../ui/parts";

export function BulkBar({ shown }: { shown: readonly TaskRow[] }) {
  const { ticked, clear } = useTicks();
  const { act } = useActing();
  const live = useLiveStore();
  const may = useMay("operate");
  const rows = useMemo(() => [...ticked].flatMap((id) => live.row(id) ?? []), [ticked, live, shown]); // eslint-disable-line react-hooks/exhaustive-deps -- rows change with what is shown
  if (!may || rows.length === 0) return null;
  return (
    <div className="bulk-bar" role="group" aria-label="Actions on ticked tasks">
      <b>{rows.length} ticked</b>
      {TASK_VERBS.map(({ verb, button, says, fits }) => {
        const ids = rows.filter((row) => fits?.(row) ?? true).map((row) => row.id);
        return (
          <Button key={verb} disabled={ids.length === 0} title={ids.length === rows.length ? says : `${says} Fits ${ids.length} of them.`} onClick={() => act({ verb, ids })}>
            {button}{ids.length < rows.length && ids.length > 0 ? ` (${ids.length})` : ""}
          </Button>
        );
      })}
      <Button look="quiet" onClick={clear}>Untick</Button>
    </div>
  );
}
