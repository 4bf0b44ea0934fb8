/** What a command would do, as marks on tasks of the graph. */
import { isReflow, untilPoint, untilTasks } from "../../acting/Bounds";
import type { Action, DryRun } from "../../api/types";

export interface Mark {
  order: number | null; // the how manieth to run; null: it would not
  waits: boolean; // would be there and wait
  begins: boolean; // the command names it
  ends: boolean; // the flow would end with it
}

export interface Preview {
  marks: Map<string, Mark>;
  /** Bounds can be clicked. */
  picking: boolean;
  until: string;
}

const NONE: Mark = { order: null, waits: false, begins: false, ends: false };

export function previewOf(action: Action, tried: DryRun | undefined): Preview {
  const marks = new Map<string, Mark>();
  const put = (id: string, what: Partial<Mark>) => marks.set(id, { ...(marks.get(id) ?? NONE), ...what });
  for (const id of action.ids ?? []) put(id, { begins: true });
  for (const id of tried?.tasks.map((task) => task.id) ?? []) put(id, { begins: true });
  tried?.runs.forEach((one, place) => {
    if ((marks.get(one.id)?.order ?? null) === null) put(one.id, { order: place + 1 });
  });
  for (const { id } of tried?.waits ?? []) put(id, { waits: true });
  for (const id of untilTasks(action)) put(id, { ends: true });
  return { marks, picking: isReflow(action), until: untilPoint(action) };
}

/** In words, for those who do not see it. */
export function markText(mark: Mark | undefined): string {
  if (mark === undefined) return "";
  const words = [mark.order !== null ? `would run, number ${mark.order}` : "", mark.waits ? "would wait" : "", mark.ends ? "the flow would end here" : ""];
  return words.filter(Boolean).join(", ");
}
