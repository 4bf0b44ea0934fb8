/**
 * The focus is never lost: when what has it leaves the page, it goes back to where it was before.
 *
 * Browsers give it to the whole document then, and who works by keys begins at the top again. What comes again as another element
 * (`data-task`: a box of a graph that was drawn anew) gets it back.
 */
import { useEffect } from "react";

const TRAIL_MAX = 8;
const AGAIN_MS = 3_000; // by then nobody waits for what was there
const TASK = "[data-task]";

/** Where to go on, of what had the focus, the latest last; null: nothing of it is there any more. */
export function lastThere(trail: readonly HTMLElement[], within: HTMLElement): HTMLElement | null {
  return trail.findLast((one) => one.isConnected && within.contains(one) && !one.matches(":disabled") && one.closest("dialog, [inert]") === null) ?? null;
}

/** The box, line or row of a task that can have the focus. */
export function elementOf(task: string): HTMLElement | null {
  return document.querySelector<HTMLElement>(`[data-task="${CSS.escape(task)}"][tabindex]`);
}

/** Mounted once, by the shell; `home` has the focus where nothing of before is there. */
export function useKeptFocus(home: string): void {
  useEffect(() => {
    const trail: HTMLElement[] = [];
    let left = false; // somebody clicked beside everything
    let wanted: { task: string; at: number } | null = null;
    const came = ({ target }: FocusEvent) => {
      if (!(target instanceof HTMLElement)) return;
      left = false;
      if (target.id !== home) wanted = null;
      const before = trail.indexOf(target);
      if (before >= 0) trail.splice(before, 1);
      trail.push(target);
      if (trail.length > TRAIL_MAX) trail.shift();
    };
    const went = ({ target, relatedTarget }: FocusEvent) => {
      if (relatedTarget !== null || !(target instanceof HTMLElement)) return;
      queueMicrotask(() => { left = target.isConnected && !target.matches(":disabled"); });
    };
    const look = () => {
      const content = document.getElementById(home);
      const has = document.activeElement;
      if (content === null) return;
      if (wanted !== null && has === content) {
        if (performance.now() - wanted.at < AGAIN_MS) elementOf(wanted.task)?.focus({ preventScroll: true });
        return;
      }
      const last = trail.at(-1);
      if ((has !== document.body && has !== null) || left || last === undefined || (last.isConnected && !last.matches(":disabled"))) return;
      const task = last.closest<HTMLElement>(TASK)?.dataset.task;
      if (task !== undefined) wanted = { task, at: performance.now() };
      const again = task === undefined ? null : elementOf(task);
      (again ?? lastThere(trail, content) ?? content).focus({ preventScroll: true });
    };
    const watch = new MutationObserver(look);
    watch.observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["disabled"] });
    document.addEventListener("focusin", came);
    document.addEventListener("focusout", went);
    return () => {
      watch.disconnect();
      document.removeEventListener("focusin", came);
      document.removeEventListener("focusout", went);
    };
  }, [home]);
}
