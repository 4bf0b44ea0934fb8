/** How far a new flow goes: until a point, or until tasks; both can be clicked in the graph. */
import type { Action } from "../api/types";
import { Button } from "../ui/parts";

export const untilTasks = (action: Action): string[] => (action.until_tasks as string[] | undefined) ?? [];
export const untilPoint = (action: Action): string => (action.until as string | undefined) ?? "";
export const isReflow = (action: Action): boolean => action.verb === "trigger" && action.flow === "new";

/** A task is a bound, or no longer; those that begin the flow cannot end it. */
export function withBound(action: Action, id: string): Action {
  if (action.ids?.includes(id)) return action;
  const old = untilTasks(action);
  return withTasks(action, old.includes(id) ? old.filter((one) => one !== id) : [...old, id]);
}

export function withPoint(action: Action, point: string): Action {
  const { until: old, ...rest } = action;
  return point === "" || old === point ? rest : { ...rest, until: point };
}

function withTasks(action: Action, tasks: string[]): Action {
  const { until_tasks: _, ...rest } = action;
  return tasks.length > 0 ? { ...rest, until_tasks: tasks } : rest;
}

export function Bounds({ action, docked, onChange }: { action: Action; docked: boolean; onChange: (action: Action) => void }) {
  const tasks = untilTasks(action);
  return (
    <fieldset className="choices">
      <legend>How far</legend>
      {docked && <p className="muted small">In the graph, click the tasks after which the flow should end, or the name of the last point.</p>}
      <label className="bound-point">until point <input className="input" placeholder="the end" value={untilPoint(action)} onChange={(event) => onChange(withPoint({ ...action, until: "" }, event.target.value.trim()))} /></label>
      <form
        className="bound-point"
        onSubmit={(event) => {
          event.preventDefault();
          const field = event.currentTarget.elements.namedItem("task") as HTMLInputElement;
          const id = field.value.trim();
          if (id !== "" && !tasks.includes(id)) onChange(withBound(action, id));
          field.value = "";
        }}
      >
        <label>until task <input className="input" name="task" placeholder="3/model" /></label>
        <button type="submit" className="button">Add</button>
      </form>
      {tasks.length > 0 && (
        <div className="bound-tasks">{tasks.map((id) => <Button key={id} aria-label={`Do not end the flow after ${id}`} onClick={() => onChange(withBound(action, id))}><code>{id}</code> ✕</Button>)}</div>
      )}
    </fieldset>
  );
}
