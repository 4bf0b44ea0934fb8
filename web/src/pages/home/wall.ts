/** A screen on a wall: nothing but the grid, and a display that stays on. */
import { useEffect } from "react";

interface WakeLock {
  request: (kind: "screen") => Promise<{ release: () => Promise<void> }>;
}

export function useWall(on: boolean): void {
  useEffect(() => {
    if (!on) return;
    document.documentElement.dataset.wall = "";
    let lock: { release: () => Promise<void> } | null = null;
    let over = false;
    const stayAwake = () => {
      const wakeLock = (navigator as { wakeLock?: WakeLock }).wakeLock;
      // A browser lets go of it whenever the page is hidden, and refuses it on a low battery.
      if (document.hidden || wakeLock === undefined) return;
      void wakeLock.request("screen").then((found) => {
        if (over) void found.release();
        else lock = found;
      }).catch(() => undefined);
    };
    stayAwake();
    document.addEventListener("visibilitychange", stayAwake);
    return () => {
      over = true;
      delete document.documentElement.dataset.wall;
      document.removeEventListener("visibilitychange", stayAwake);
      void lock?.release();
    };
  }, [on]);
}
