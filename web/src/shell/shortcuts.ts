/** Keys, each with its words, so that the list of shortcuts is what there is. */
import { useEffect, useRef } from "react";
import { flushSync } from "react-dom";

export interface Shortcut {
  keys: string; // "g r": one after the other; "Control+k"
  says: string;
  run: () => void;
}

const active = new Set<Shortcut>();
let first = "";
let firstAt = 0;
const SEQUENCE_MS = 1_200;

export const shortcutList = (): Shortcut[] => [...active];

export function useShortcut(keys: string, says: string, run: () => void): void {
  const latest = useRef(run);
  useEffect(() => {
    latest.current = run;
  });
  useEffect(() => {
    const shortcut = { keys, says, run: () => latest.current() };
    active.add(shortcut);
    return () => {
      active.delete(shortcut);
    };
  }, [keys, says]);
}

function isWriting(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement && /^(checkbox|radio|range|button)$/.test(target.type)) return false;
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** Mounted once, by the shell. */
export function useShortcutKeys(): void {
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      const key = event.ctrlKey || event.metaKey ? `Control+${event.key.toLowerCase()}` : event.key;
      if (event.altKey || (isWriting(event.target) && !key.startsWith("Control+"))) return;
      if (document.querySelector("dialog[open]") !== null && key !== "Control+k") return;
      // When the keys were pressed, and not when a busy page came to hear of them.
      const sequence = event.timeStamp - firstAt < SEQUENCE_MS ? `${first} ${key}` : key;
      const found = [...active].find((one) => one.keys === sequence) ?? [...active].find((one) => one.keys === key);
      first = key;
      firstAt = event.timeStamp;
      if (found === undefined) return;
      event.preventDefault();
      first = "";
      flushSync(() => found.run()); // the next key is for what this one has opened
    };
    window.addEventListener("keydown", hear);
    return () => window.removeEventListener("keydown", hear);
  }, []);
}
