/** Which tasks are shown, for all views at once. */
import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { useLive } from "../../api/runLive";
import { useShortcut } from "../../shell/shortcuts";
import { STATE_SAYS, TASK_STATES } from "../../ui/palette";
import { Button } from "../../ui/parts";
import { StateIcon } from "../../ui/StateIcon";
import { FilterField } from "../../ui/FilterField";
import { isFiltering, nameFilter, REMARKS } from "./filters";
import { ViewChoice } from "./Panes";
import { useRunPage } from "./useRunPage";

export function FilterBar({ children }: { children: ReactNode }) {
  const { filters, setFilter, clearFilters, views } = useRunPage();
  const { rows, stages } = useLive();
  const name = useRef<HTMLInputElement>(null);
  const toggles = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(false); // where they have no room of their own
  const last = views.at(-1);
  // Where they have not all room, the newest of what is shown is in sight.
  useEffect(() => {
    const pressed = toggles.current?.querySelectorAll<HTMLElement>("[aria-pressed=true]");
    const box = toggles.current;
    const one = pressed?.[pressed.length - 1];
    if (box && one) box.scrollLeft = Math.max(0, one.offsetLeft + one.offsetWidth - box.offsetLeft - box.clientWidth);
  }, [last]);
  useShortcut("filter", () => name.current?.focus());
  const flows = useMemo(() => [...new Set(rows.flatMap((row) => row.flows))].sort((a, b) => a - b), [rows]);
  return (
    <div className="filter-bar">
      <div ref={toggles} className="view-toggles" role="group" aria-label="Views">{children}</div>
      <ViewChoice />
      <Button className="filters-button" aria-expanded={open} aria-controls="filters" onClick={() => setOpen(!open)}>{isFiltering(filters) ? "Filters ●" : "Filters"}</Button>
      <div id="filters" className={open ? "filters open" : "filters"}>
      <FilterField input={name} placeholder={stages ? "Stage" : "Name or family"} label={stages ? "Filter stages" : "Filter tasks by name or family"} value={filters.name} change={(text) => setFilter("name", text)} problem={nameFilter(filters.name).problem} />
      {!stages && <input className="input point" type="search" placeholder="Point" aria-label="Point, with * and ?" value={filters.point} onChange={(event) => setFilter("point", event.target.value)} />}
      {flows.length > 1 && !stages && (
        <select aria-label="Flow" value={filters.flow} onChange={(event) => setFilter("flow", event.target.value)}>
          <option value="">all flows</option>
          {flows.map((flow) => <option key={flow} value={flow}>flow {flow}</option>)}
        </select>
      )}
      <StateChips />
      {isFiltering(filters) && <Button look="quiet" onClick={clearFilters}>Clear</Button>}
      </div>
    </div>
  );
}

function StateChips() {
  const { filters, setFilter } = useRunPage();
  const { rows } = useLive();
  const counts = useMemo(() => {
    const found = new Map<string, number>();
    for (const row of rows) {
      found.set(row.state, (found.get(row.state) ?? 0) + 1);
      for (const remark of row.remarks) found.set(remark, (found.get(remark) ?? 0) + 1);
    }
    return found;
  }, [rows]);
  const shown = [...TASK_STATES, ...REMARKS].filter((state) => counts.has(state) || filters.states.includes(state));
  const toggle = (state: string) => {
    const next = filters.states.includes(state) ? filters.states.filter((one) => one !== state) : [...filters.states, state];
    setFilter("state", next.join(","));
  };
  return (
    <div className="state-chips" role="group" aria-label="States">
      {shown.map((state) => (
        <button key={state} type="button" className="chip state-chip" aria-pressed={filters.states.includes(state)} title={STATE_SAYS[state]} onClick={() => toggle(state)}>
          {!REMARKS.includes(state) && <StateIcon state={state} size={13} />}{state} <b>{counts.get(state) ?? 0}</b>
        </button>
      ))}
    </div>
  );
}
