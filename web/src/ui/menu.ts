/** Menus close as menus do: by a click elsewhere, or Escape. */
import { useEffect, type RefObject } from "react";

/** `close` closes what is open in `box`; without it `box` is a `<details>`. */
export function useMenu(box: RefObject<HTMLElement | null>, close?: () => void): void {
  useEffect(() => {
    const hear = (event: Event) => {
      const inside = event.target instanceof Node && box.current?.contains(event.target);
      if (box.current === null || (event instanceof KeyboardEvent ? event.key !== "Escape" : inside)) return;
      if (close !== undefined) close();
      else box.current.removeAttribute("open");
    };
    document.addEventListener("pointerdown", hear);
    document.addEventListener("keydown", hear);
    return () => {
      document.removeEventListener("pointerdown", hear);
      document.removeEventListener("keydown", hear);
    };
  }, [box, close]);
}
