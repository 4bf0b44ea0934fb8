/** Whether this page hears of changes, for whoever wants to show it. */
import { useSyncExternalStore } from "react";
import type { Connection } from "./stream";

let now: Connection | "idle" = "idle";
const listeners = new Set<() => void>();

export function setConnection(connection: Connection | "idle"): void {
  if (connection === now) return;
  now = connection;
  listeners.forEach((listener) => listener());
}

export function useConnection(): Connection | "idle" {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => now,
  );
}
