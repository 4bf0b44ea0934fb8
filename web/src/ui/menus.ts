/** Menus that unfold from their button: a click elsewhere or Escape closes them. */
import { useCallback, useEffect, useRef, type RefObject } from "react";

/** Calls `close` when somebody clicks outside of `box`, or presses Escape. */
export function useClosing(box: RefObject<HTMLElement | null>, close: () => void): void {
  useEffect(() => {
    const hear = (event: Event) => {
      const isInside = event.target instanceof Node && box.current?.contains(event.target) === true;
      if (event instanceof KeyboardEvent ? event.key === "Escape" : !isInside) close();
    };
    document.addEventListener("pointerdown", hear);
    document.addEventListener("keydown", hear);
    return () => {
      document.removeEventListener("pointerdown", hear);
      document.removeEventListener("keydown", hear);
    };
  }, [box, close]);
}

/** For a `<details>`: where it is, and what closes it; a focus in it goes back to its button. */
export function useMenu(): [menu: RefObject<HTMLDetailsElement | null>, close: () => void] {
  const menu = useRef<HTMLDetailsElement>(null);
  const close = useCallback(() => {
    const box = menu.current;
    if (box === null || !box.open) return;
    if (box.contains(document.activeElement)) box.querySelector("summary")?.focus();
    box.open = false;
  }, []);
  useClosing(menu, close);
  return [menu, close];
}
