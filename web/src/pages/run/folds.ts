/**
 * Elements of a mapped task, shown as one box or line while they are many and nobody asks for each; and families, where somebody asks for that.
 *
 * What went wrong is told by name all the same, and so is what somebody looks at. `1/process<file>` is the id of a fold, which commands take for
 * all of its elements.
 */
import { useCallback, useMemo } from "react";
import type { Counts, TaskWords } from "../../api/types";
import { TASK_STATES } from "../../ui/palette";
import { useViewOption } from "./useRunPage";

export const FOLD_MIN = 10; // elements; fewer are read as well one by one
const FAMILY_MIN = 2; // members
const UNWELL = ["failed", "submit-failed"];
const UNWELL_MAX = 5; // told by name beside the fold

export interface Fold {
  id: string;
  point: string;
  name: string;
  /** Of all elements, those that are told by name included. */
  counts: Counts;
  total: number;
}

export interface Folded {
  folds: ReadonlyMap<string, Fold>;
  /** From an element that is not shown by itself to its fold. */
  foldOf: ReadonlyMap<string, string>;
}

type Element = Pick<TaskWords, "id" | "point" | "name" | "state">;

export const NOTHING_FOLDED: Folded = { folds: new Map(), foldOf: new Map() };

/** No family of a definition is called so: it is a mapped task. */
export const isMapped = (family: string): boolean => family.endsWith(">");

const ROOT = "root"; // the family of all: folded, nothing would be left
/** The family as which a task is folded: the nearest. */
const foldNameOf = (families: readonly string[], all: boolean): string | undefined => families.find(isMapped) ?? (all ? families.find((one) => one !== ROOT) : undefined);

/** `stays`: what is shown by itself whatever becomes of the others. `all`: families, too. */
export function folded(tasks: readonly Element[], familiesOf: (name: string) => readonly string[], isUnfolded: (fold: string) => boolean, stays: (id: string) => boolean, all = false): Folded {
  const elements = new Map<string, { fold: Fold; tasks: Element[] }>();
  for (const task of tasks) {
    const name = foldNameOf(familiesOf(task.name), all);
    if (name === undefined) continue;
    const id = `${task.point}/${name}`;
    const known = elements.get(id) ?? { fold: { id, point: task.point, name, counts: {}, total: 0 }, tasks: [] };
    known.tasks.push(task);
    known.fold.total += 1;
    known.fold.counts[task.state] = (known.fold.counts[task.state] ?? 0) + 1;
    elements.set(id, known);
  }
  const found = [...elements.values()].filter(({ fold }) => fold.total >= (isMapped(fold.name) ? FOLD_MIN : FAMILY_MIN) && !isUnfolded(fold.id));
  const foldOf = new Map<string, string>();
  for (const { fold, tasks: those } of found) {
    const unwell = new Set(those.filter((task) => UNWELL.includes(task.state)).slice(0, UNWELL_MAX).map((task) => task.id));
    for (const { id } of those) if (!unwell.has(id) && !stays(id)) foldOf.set(id, fold.id);
  }
  return { folds: new Map(found.map(({ fold }) => [fold.id, fold])), foldOf };
}

/** What must be known first stands first. */
const SAID = [...UNWELL, ...TASK_STATES.filter((state) => !UNWELL.includes(state))];

export const foldState = ({ counts }: Pick<Fold, "counts">): string => SAID.find((state) => counts[state]) ?? "future";

/** "200 elements: 2 failed, 198 succeeded", and of a family "12 tasks: …" */
export function foldText({ name, counts, total }: Fold): string {
  return `${total} ${isMapped(name) ? "elements" : "tasks"}: ${SAID.filter((state) => counts[state]).map((state) => `${counts[state]} ${state}`).join(", ")}`;
}

/** Which folds of a view somebody has opened, kept in the address. */
export function useUnfolded(view: string): { isUnfolded: (id: string) => boolean; unfold: (id: string) => void; foldAll: (() => void) | null } {
  const [text, set] = useViewOption(view, "unfold", "");
  const ids = useMemo(() => text.split(",").filter(Boolean), [text]);
  const isUnfolded = useCallback((id: string) => ids.includes(id), [ids]);
  const unfold = useCallback((id: string) => set([...ids, id].join(",")), [ids, set]);
  return { isUnfolded, unfold, foldAll: ids.length > 0 ? () => set("") : null };
}
