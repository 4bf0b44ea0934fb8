/** Short messages about what was just done. */
import { useSyncExternalStore } from "react";

interface Toast {
  key: number;
  text: string;
  bad: boolean;
}

let toasts: readonly Toast[] = [];
let next = 1;
const listeners = new Set<() => void>();
const SHOWN_MS = 6_000;

function put(found: readonly Toast[]): void {
  toasts = found;
  listeners.forEach((listener) => listener());
}

export function say(text: string, bad = false): void {
  const key = next++;
  put([...toasts.slice(-3), { key, text, bad }]);
  window.setTimeout(() => put(toasts.filter((one) => one.key !== key)), bad ? 2 * SHOWN_MS : SHOWN_MS);
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map((toast) => (
        <div key={toast.key} className={toast.bad ? "toast bad" : "toast"}>{toast.text}</div>
      ))}
    </div>
  );
}
