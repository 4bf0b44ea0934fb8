/** Commands tried without being given. */
import { useQuery } from "@tanstack/react-query";
import { tryCommand } from "../api/commands";
import type { Action, DryRun } from "../api/types";

// These are about whoever drives the run, not about its tasks: there is nothing to try.
const UNTRIED = ["run", "broadcast", "message"];

/** What would happen; asked for once, however many want to show it. */
export function useTried(run: string, action: Action | null) {
  return useQuery<DryRun>({
    queryKey: ["run", run, "dry run", action],
    queryFn: () => tryCommand(run, action ?? { verb: "" }),
    enabled: action !== null && !UNTRIED.includes(action.verb),
    retry: false,
    gcTime: 0,
  });
}
