/** Commands tried without being given, and whether what was shown is still what would happen. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { giveCommand, tryCommand, type Obeyed } from "../api/commands";
import { Problem } from "../api/http";
import type { Action, DryRun } from "../api/types";

// These are about whoever drives the run, not about its tasks: there is nothing to try.
const UNTRIED = ["run", "broadcast", "message"];

const keyOf = (run: string, action: Action | null) => ["run", run, "dry run", action];

/** What would happen; asked for once, however many want to show it. */
export function useTried(run: string, action: Action | null) {
  return useQuery<DryRun>({
    queryKey: keyOf(run, action),
    queryFn: () => tryCommand(run, action ?? { verb: "" }),
    enabled: action !== null && !UNTRIED.includes(action.verb),
    retry: false,
    gcTime: 0,
  });
}

/** Whether all that would happen at once now was to be seen before; what is less harms nobody. */
export function isWithin(now: DryRun, shown: DryRun): boolean {
  const told = new Set(happenings(shown));
  return happenings(now).every((one) => told.has(one));
}

function happenings({ changes, killed, polled, status }: DryRun): string[] {
  return [
    `run ${status.after}`,
    ...changes.map((one) => JSON.stringify([one.id, one.before, one.after, one.made])),
    ...killed.map((id) => `kill ${id}`),
    ...polled.map((id) => `poll ${id}`),
  ];
}

/** Gives a command unless something else would happen by now than was shown: then that is shown instead. */
export function useGiving(run: string, action: Action, shown: DryRun | undefined): () => Promise<Obeyed> {
  const queries = useQueryClient();
  return async () => {
    if (shown !== undefined) {
      const now = await tryCommand(run, action);
      if (!isWithin(now, shown)) {
        queries.setQueryData(keyOf(run, action), now);
        throw new Problem(409, "changed", "The run has changed since this was shown, and nothing was done. This is what would happen now; confirm it, or cancel.");
      }
    }
    return giveCommand(run, action);
  };
}
