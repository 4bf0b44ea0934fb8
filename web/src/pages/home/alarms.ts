/** Browser notifications: off until asked for, and only for a tab that nobody sees. */
import { useEffect, useRef, useState } from "react";
import type { GridRun } from "../../api/types";
import { plain } from "../../ui/plain";
import { say } from "../../ui/toasts";
import { keepNotifying, notifies } from "./keep";

const ALARMS = ["stalled", "error"];

/** Runs that have stalled or ended with an error since the last look; of the first look none is new. */
export function newAlarms(before: ReadonlyMap<number, string> | null, runs: readonly GridRun[]): GridRun[] {
  if (before === null) return [];
  return runs.filter((run) => ALARMS.includes(run.status) && before.get(run.number) !== run.status);
}

export function alarmText(run: GridRun): string {
  if (run.cause === null) return plain(run.reason);
  return plain(`${run.cause.id} ${run.cause.state}${run.cause.more > 0 ? `, and ${run.cause.more} more` : ""}`);
}

export function useAlarms(runs: readonly GridRun[] | undefined): { on: boolean; toggle: () => void } {
  const [on, setOn] = useState(notifies);
  const before = useRef<Map<number, string> | null>(null);
  useEffect(() => {
    if (runs === undefined) return;
    const found = newAlarms(before.current, runs);
    before.current = new Map([...(before.current ?? []), ...runs.map((run) => [run.number, run.status] as const)]);
    if (!on || !document.hidden) return;
    for (const run of found) new Notification(`${plain(run.name)} ${run.status === "error" ? "failed" : run.status}`, { body: alarmText(run) });
  }, [runs, on]);
  const toggle = async () => {
    if (on || !("Notification" in window)) {
      keepNotifying(false);
      setOn(false);
      if (!on) say("The browser allows notifications only if this page is opened with https or on localhost.", true);
      return;
    }
    const is_allowed = (await Notification.requestPermission()) === "granted";
    keepNotifying(is_allowed);
    setOn(is_allowed);
    say(is_allowed ? "You are notified when a run stalls or fails while this tab is hidden." : "The browser does not allow notifications from this page: allow them in its settings for this site.", !is_allowed);
  };
  return { on, toggle: () => void toggle() };
}
