/** Commands to a run: tried, or given. */
import { inPath, post, postLook } from "./http";
import type { Action, DryRun } from "./types";

export interface Obeyed {
  run: string;
  number: number;
  verb: string;
  answer: Record<string, unknown>;
}

/** What would happen. */
export const tryCommand = (run: string, action: Action): Promise<DryRun> =>
  postLook<DryRun>(`/runs/${inPath(run)}/dry-run`, { command: action });

export function giveCommand(run: string, action: Action): Promise<Obeyed> {
  const { verb, ...fields } = action;
  // `run` is the command line's word for letting any scheduler go on with a run.
  if (verb === "run") return post<Obeyed>(`/runs/${inPath(run)}/carry-on`, {});
  return post<Obeyed>(`/runs/${inPath(run)}/${verb}`, fields);
}
