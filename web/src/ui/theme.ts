/** Dark or light: as the system says, until somebody says otherwise. */
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";
const KEY = "tidewheel.theme";
const listeners = new Set<() => void>();

export function readTheme(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function setTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  applyTheme();
  listeners.forEach((listener) => listener());
}

export function applyTheme(): void {
  const theme = readTheme();
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function useTheme(): Theme {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    readTheme,
  );
}

export function isDark(): boolean {
  const theme = readTheme();
  return theme === "system" ? matchMedia("(prefers-color-scheme: dark)").matches : theme === "dark";
}

export const toggleTheme = (): void => setTheme(isDark() ? "light" : "dark");
