/** Going to the panel of a task by a key, also when it is not drawn yet. */
import { useEffect, useRef, type RefObject } from "react";

export const PANEL = "task-panel"; // its id, for the link that skips to it

let wanted: string | null = null;

/** The panel of this task has the focus, now or as soon as it is there. */
export function enterPanel(task: string): void {
  const panel = document.getElementById(PANEL);
  if (panel?.dataset.of === task) panel.focus();
  else wanted = task;
}

export function useEntered(task: string): RefObject<HTMLElement | null> {
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    if (wanted === task) panel.current?.focus();
    wanted = null;
  }, [task]);
  return panel;
}
