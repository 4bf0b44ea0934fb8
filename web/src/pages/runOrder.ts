/** Which runs a person should see first. */
import type { RunFacts, RunSummary } from "../api/types";
import { readFilter } from "../ui/globs";

export const RUN_STATES = ["stalled", "error", "running", "paused", "waiting for release", "stopping", "created", "stopped", "completed"];
export const runFilter = (text: string) => readFilter(text, RUN_STATES);

/** Smaller is more urgent. */
export function urgency(run: RunFacts, summary: RunSummary | undefined): number {
  if (run.status === "error") return 0;
  if (run.status === "stalled") return 1;
  if (isAbandoned(run)) return 2;
  if ((summary?.causes_count ?? 0) > 0 && !isOver(run)) return 3;
  const order = ["waiting for release", "paused", "stopping", "running", "created", "stopped", "completed"];
  const place = order.indexOf(run.status);
  return 4 + (place < 0 ? order.length : place);
}

export const isOver = (run: RunFacts): boolean => ["completed", "stopped"].includes(run.status);

/** Whether a verb for a whole run makes sense now. */
export function isPossible(verb: string, run: RunFacts): boolean {
  const goes = (run.driven || run.offered) && !isOver(run);
  if (verb === "pause") return goes && run.status !== "paused" && run.status !== "stopping";
  if (verb === "resume") return run.status === "paused";
  if (verb === "stop") return goes && run.status !== "stopping";
  if (verb === "run") return !run.offered && (isAbandoned(run) || isGivenUp(run) || run.status === "stopped" || run.status === "error");
  return goes;
}

/** It should go on, and no scheduler drives it or is asked to. */
export const isAbandoned = (run: RunFacts): boolean =>
  !run.driven && !run.offered && ["running", "paused", "stopping", "waiting for release"].includes(run.status);

/** Its stall timeout has ended it, or its scheduler died after it had stalled: nothing happens until a command resumes it. */
export const isGivenUp = (run: RunFacts): boolean => run.status === "stalled" && !run.driven && !run.offered;

/** Events tell of batches, facts who drives a run; a batch of which the facts do not know yet was written by somebody. */
export function withDriver(told: RunFacts, facts: RunFacts | undefined): RunFacts {
  if (facts === undefined) return told;
  return facts.status === told.status ? { ...told, driven: facts.driven, offered: facts.offered } : { ...told, driven: true };
}

export function inOrder<Run extends RunFacts>(runs: readonly Run[], summaries: ReadonlyMap<string, RunSummary>): Run[] {
  return [...runs].sort(
    (a, b) =>
      urgency(a, summaries.get(a.name)) - urgency(b, summaries.get(b.name)) ||
      b.updated_at.localeCompare(a.updated_at),
  );
}

/** How many tasks there will be; null where that is not known. A run that has completed has no more. */
export const allTasks = ({ run, tasks, total }: RunSummary): number | null => (run.status === "completed" ? tasks : total);

/** The part of all tasks that is done; null where it is not known how many there will be. */
export function progress(summary: RunSummary): number | null {
  const all = allTasks(summary);
  return all === null || all === 0 ? null : summary.done / all;
}

export function progressText(summary: RunSummary): string {
  const part = progress(summary);
  const percent = part === null ? "" : ` · ${Math.floor(100 * part)} %`;
  return `${summary.done} of ${allTasks(summary) ?? summary.tasks} ${summary.stages ? "stages" : "tasks"} done${percent}`;
}

/** The first cause in words: what failed, how, what it wrote last, and who waits for it. */
export function causeOf({ groups, causes, causes_count: count }: Pick<RunSummary, "groups" | "causes" | "causes_count">): { id: string; title: string; text: string } | null {
  const more = (told: number) => (count > told ? `, and ${count - told} more` : "");
  const [group] = groups;
  if (group !== undefined) {
    const title = group.text.startsWith(group.log) ? group.log : group.text;
    return { id: group.log, title, text: group.text.slice(title.length) + more(group.count) };
  }
  const [cause] = causes;
  if (cause === undefined) return null;
  const said = cause.reasons[0]?.text.replace(`${cause.id} `, "") ?? cause.state;
  return { id: cause.id, title: cause.id, text: ` ${said}${more(1)}` };
}

/** From its start to its end, however often it was stopped in between; null as long as it has not ended. */
export const tookSeconds = (run: RunFacts): number | null =>
  run.ended_at === null || !isOver(run) ? null : (Date.parse(run.ended_at) - Date.parse(run.created_at)) / 1_000;

const PAST_MAX = 20;

/** How long the latest complete runs of each workflow took: the median. */
export function usualSeconds(runs: readonly RunFacts[]): Map<string, number> {
  const past = new Map<string, number[]>();
  for (const run of [...runs].sort((a, b) => b.number - a.number)) {
    const took = tookSeconds(run);
    if (run.status !== "completed" || took === null) continue;
    const known = past.get(run.workflow) ?? [];
    if (known.length < PAST_MAX) known.push(took);
    past.set(run.workflow, known);
  }
  return new Map([...past].map(([workflow, seconds]) => {
    const sorted = seconds.sort((a, b) => a - b);
    return [workflow, sorted[Math.floor((sorted.length - 1) / 2)] ?? 0];
  }));
}

/** What is left of that; null where it took longer already, or where nothing goes on. */
export function secondsLeft(run: RunFacts, usual: number | null, now: number): number | null {
  if (usual === null || run.status !== "running" || isAbandoned(run)) return null;
  const left = usual - (now - Date.parse(run.created_at)) / 1_000;
  return left > 0 ? left : null;
}
