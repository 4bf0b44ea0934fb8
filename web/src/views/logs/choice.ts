/** Which log of a task: of which submission and attempt, and which file. */
import type { Submission } from "../../api/types";
import { endingOf } from "../../ui/endings";

export interface Choice {
  key: string; // "2.1": submission, attempt
  submit: number;
  attempt: number;
  ended: string;
}

export const FILES = [
  ["out", "out", "What the job wrote to its standard output"],
  ["err", "err", "What the job wrote to its standard error"],
  ["job", "script", "The job script as it was run"],
  ["status", "status", "What the job reported about itself"],
  ["activity", "activity", "What tidewheel did with the job"],
] as const;

/** The newest first. One that no worker has taken yet has written nothing. */
export function attemptsOf(submissions: readonly Submission[]): Choice[] {
  return [...submissions]
    .sort((a, b) => b.submit - a.submit)
    .flatMap((one) =>
      [...one.attempts]
        .sort((a, b) => b.attempt - a.attempt)
        .map(({ attempt, ended_by, exit_status }) => ({
          key: `${one.submit}.${attempt}`,
          submit: one.submit,
          attempt,
          ended: ended_by === null ? "running" : `${endingOf(ended_by).word}${exit_status === null ? "" : `, exit ${exit_status}`}`,
        })),
    );
}

/** `wanted` is "ID:SUBMIT.ATTEMPT": of another task it means nothing, and the latest is shown. */
export function choose(choices: readonly Choice[], id: string, wanted: string): Choice | undefined {
  const key = wanted.startsWith(`${id}:`) ? wanted.slice(id.length + 1) : "";
  return choices.find((one) => one.key === key) ?? choices[0];
}
