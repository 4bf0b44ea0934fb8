/** Where a view opens: at what needs action, not at the oldest point, which has ended long ago. */
import { useEffect, useRef } from "react";
import type { TaskRow } from "../../api/types";

const UNWELL = ["failed", "submit-failed", "expired"];
const ABOVE = 2; // lines before it, which say where it is

/** A task that stays as it is until an operator acts. */
export function needsAction({ state, remarks, in_pool }: Pick<TaskRow, "state" | "remarks" | "in_pool">): boolean {
  return remarks.includes("incomplete") || remarks.includes("blocked") || (in_pool && UNWELL.includes(state));
}

/** Those that need action; where none does, as in a run that has ended, those that failed. */
export function failuresOf<Row extends Pick<TaskRow, "state" | "remarks" | "in_pool">>(rows: readonly Row[]): Row[] {
  const found = rows.filter(needsAction);
  return found.length > 0 ? found : rows.filter((row) => UNWELL.includes(row.state));
}

/** Brings a line into sight once, as soon as there is one (0 and more), unless the view was scrolled, clicked or typed into by then: what you open stays under your eyes. */
export function useOpenAt(virtual: { scrollToIndex: (index: number, options: { align: "start" }) => void; scrollOffset: number | null }, place: number, wanted = true): void {
  const opened = useRef(false);
  useEffect(() => {
    const stay = () => { opened.current = true; };
    const acts = ["pointerdown", "keydown"] as const;
    for (const act of acts) window.addEventListener(act, stay, { capture: true });
    return () => { for (const act of acts) window.removeEventListener(act, stay, { capture: true }); };
  }, []);
  useEffect(() => {
    if (opened.current || place < 0) return;
    opened.current = true;
    if (wanted && (virtual.scrollOffset ?? 0) === 0) virtual.scrollToIndex(Math.max(0, place - ABOVE), { align: "start" });
  }, [place, wanted, virtual]);
}
