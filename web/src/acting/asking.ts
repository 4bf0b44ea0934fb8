/** A command that is asked for where no run is drawn, as in the palette: the page of its run takes it, or else the shell. */
import { useSyncExternalStore } from "react";
import type { Action } from "../api/types";

export interface Asked {
  run: string;
  action: Action;
}

let asked: Asked | null = null;
const listeners = new Set<() => void>();

const put = (next: Asked | null): void => {
  asked = next;
  listeners.forEach((listener) => listener());
};

/** Nothing is done yet: what it would do is shown, and the button that does it. */
export const ask = (run: string, action: Action): void => put({ run, action });
export const forget = (): void => put(null);

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

export const useAsked = (): Asked | null => useSyncExternalStore(subscribe, () => asked);
