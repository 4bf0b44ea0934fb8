/** Keys that do something now; which there are, and their words, says the table (`keys.ts`). */
import { useEffect, useRef } from "react";
import { flushSync } from "react-dom";
import { keyOf } from "./keys";

interface Shortcut {
  id: string;
  keys: string;
  run: () => void;
}

const active = new Set<Shortcut>();
let first = "";
let firstAt = 0;
const SEQUENCE_MS = 1_200;

/** The ids of those that do something on this page, for who looks. */
export const activeKeys = (): ReadonlySet<string> => new Set([...active].map(({ id }) => id));

/** `when`: what would do nothing, or may not be done, is no shortcut. */
export function useShortcut(id: string, run: () => void, when = true): void {
  const latest = useRef(run);
  useEffect(() => {
    latest.current = run;
  });
  useEffect(() => {
    if (!when) return undefined;
    const shortcut = { id, keys: keyOf(id).keys, run: () => latest.current() };
    active.add(shortcut);
    return () => {
      active.delete(shortcut);
    };
  }, [id, when]);
}

function isWriting(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement && /^(checkbox|radio|range|button)$/.test(target.type)) return false;
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** The latest of those with these keys: what was opened last hears first. */
const withKeys = (keys: string): Shortcut | undefined => [...active].findLast((one) => one.keys === keys);

function find(key: string, at: number): Shortcut | undefined {
  // When the keys were pressed, and not when a busy page came to hear of them.
  const begun = first !== "" && at - firstAt < SEQUENCE_MS && [...active].some((one) => one.keys.startsWith(`${first} `));
  // The second letter of what is no sequence means nothing, and not what it would mean alone.
  const found = begun ? withKeys(`${first} ${key}`) : withKeys(key);
  first = begun ? "" : key;
  firstAt = at;
  return found;
}

/** Mounted once, by the shell. */
export function useShortcutKeys(): void {
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if (["Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
      const key = event.ctrlKey || event.metaKey ? `Control+${event.key.toLowerCase()}` : event.key;
      if (event.altKey || event.repeat || (isWriting(event.target) && !key.startsWith("Control+"))) return;
      if (document.querySelector("dialog[open]") !== null && key !== "Control+k") return;
      const found = find(key, event.timeStamp);
      if (found === undefined) return;
      event.preventDefault();
      first = "";
      flushSync(() => found.run()); // the next key is for what this one has opened
    };
    window.addEventListener("keydown", hear);
    return () => window.removeEventListener("keydown", hear);
  }, []);
}
