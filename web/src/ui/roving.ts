/**
 * Lists and grids of things to open: one can be reached by Tab, arrows go from there (WAI-ARIA).
 *
 * What arrows stop at has `data-stop`; what stands beside each other is in one row. Tab comes back to where one was.
 */
import { useCallback, useLayoutEffect, useRef, type FocusEvent, type KeyboardEvent, type RefObject } from "react";

const STOP = "[data-stop]";

interface Roving<Box extends HTMLElement> {
  ref: RefObject<Box | null>;
  onKeyDown: (event: KeyboardEvent) => void;
  onFocus: (event: FocusEvent) => void;
}

/** `rows`: what a row is, as a selector; `pair`: where Up and Down lead to, counted from the left or the right end of a row. */
export function useRoving<Box extends HTMLElement>(rows: string, pair: "left" | "right" = "left"): Roving<Box> {
  const ref = useRef<Box>(null);
  const onKeyDown = useCallback((event: KeyboardEvent) => {
    const next = ref.current === null ? null : neighbour(ref.current, event, rows, pair);
    if (next === null) return;
    event.preventDefault();
    focusOn(next);
  }, [rows, pair]);
  const onFocus = useCallback((event: FocusEvent) => makeStop(ref.current, event.target), []);
  // What was drawn anew cannot be reached by Tab; of those that can, one is enough.
  useLayoutEffect(() => {
    const stops = [...(ref.current?.querySelectorAll<HTMLElement>(STOP) ?? [])];
    const reached = stops.filter((one) => one.tabIndex === 0);
    const keep = reached.find((one) => one === document.activeElement) ?? reached[0] ?? stops[0];
    for (const one of stops) {
      const place = one === keep ? 0 : -1;
      if (one.tabIndex !== place) one.tabIndex = place;
    }
  });
  return { ref, onKeyDown, onFocus };
}

const PAGE = 15; // lines that PageDown passes

/** Where a key leads to in a list that has the focus as a whole; null: nowhere. `at` below 0: it is at none yet. */
export function stepIn(key: string, at: number, count: number): number | null {
  const steps: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + PAGE, PageUp: at - PAGE, Home: 0, End: count - 1 };
  const to = steps[key];
  return to === undefined || count === 0 ? null : Math.min(count - 1, Math.max(0, to));
}

export function focusOn(one: HTMLElement): void {
  one.focus();
  one.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function makeStop(box: HTMLElement | null, one: EventTarget): void {
  if (box === null || !(one instanceof HTMLElement) || !one.matches(STOP)) return;
  box.querySelectorAll<HTMLElement>(`${STOP}[tabindex="0"]`).forEach((old) => { old.tabIndex = -1; });
  one.tabIndex = 0;
}

/** Where an arrow leads to; in another row to what is as far from its end. */
function neighbour(box: HTMLElement, event: KeyboardEvent, selector: string, pair: "left" | "right"): HTMLElement | null {
  const rows = box.matches(selector) ? [box] : [...box.querySelectorAll<HTMLElement>(selector)];
  const row = rows.findIndex((one) => one.contains(event.target as Node));
  const stops = (place: number) => [...(rows[place]?.querySelectorAll<HTMLElement>(STOP) ?? [])];
  const here = stops(row);
  const column = here.indexOf(event.target as HTMLElement);
  if (row < 0 || column < 0) return null;
  const beside = (place: number) => {
    const found = stops(place);
    const first = column === 0 || here[column]?.tagName === "A";
    return (pair === "left" || first ? found[Math.min(pair === "left" ? column : 0, found.length - 1)] : found[Math.max(0, found.length - (here.length - column))]) ?? null;
  };
  switch (event.key) {
    case "ArrowRight": return here[column + 1] ?? null;
    case "ArrowLeft": return here[column - 1] ?? null;
    case "ArrowDown": return beside(row + 1);
    case "ArrowUp": return beside(row - 1);
    case "Home": return (event.ctrlKey ? stops(0) : here)[0] ?? null;
    case "End": return (event.ctrlKey ? stops(rows.length - 1) : here).at(-1) ?? null;
    default: return null;
  }
}
