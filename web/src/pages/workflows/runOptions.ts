/** The options of a run as texts in a form, and what a refusal says about each. */
import type { Problem } from "../../api/http";
import type { Given, RunOptions, RunRange } from "../../api/registry";
import { countText } from "../../ui/quantities";

export interface OptionField {
  name: "initial" | "final" | "start" | "stop";
  title: string;
  says: string;
}

export const POINTS: readonly OptionField[] = [
  { name: "initial", title: "Initial point", says: "The first cycle point, instead of the one in the definition." },
  { name: "final", title: "Final point", says: "The last cycle point, instead of the one in the definition." },
  { name: "start", title: "Start at", says: "Begin at this point: earlier points count as done." },
  { name: "stop", title: "Stop after", says: "Stop when this point is done; the run can be continued later." },
];

export const MODES: readonly (readonly [string, string])[] = [
  ["live", "live: jobs run"],
  ["simulation", "simulation: no jobs; tasks only wait for their run length"],
  ["dummy", "dummy: jobs that do nothing"],
  ["skip", "skip: every task succeeds at once"],
];

export interface OptionTexts extends Record<OptionField["name"], string> {
  priority: string;
  mode: string;
  paused: boolean;
}

export const NO_OPTIONS: OptionTexts = { initial: "", final: "", start: "", stop: "", priority: "", mode: "live", paused: false };
export const PRIORITY = { min: -1, max: 100 };

/** What is wrong with a field before anybody is asked. */
export function wrongOption(name: keyof OptionTexts, texts: OptionTexts): string {
  if (name === "priority" && texts.priority !== "") {
    const number = Number(texts.priority);
    return Number.isInteger(number) && number >= PRIORITY.min && number <= PRIORITY.max ? "" : `Give a whole number from ${PRIORITY.min} to ${PRIORITY.max}.`;
  }
  return "";
}

/** The points that were said; null: none. */
export function pointsOf(texts: OptionTexts): Given["points"] {
  const said = POINTS.map(({ name }) => [name, texts[name].trim()] as const).filter(([, text]) => text !== "");
  return said.length === 0 ? null : Object.fromEntries(said);
}

/** "4 points, from 3 to 6: 11 tasks": what a run goes through. */
export function rangeText({ first, last, points, tasks, cut }: RunRange): string {
  if (last === null) return `It begins at ${first} and has no end; the graph shows only its first points.`;
  const all = Object.values(tasks).reduce((sum, count) => sum + count, 0);
  const most = cut ? "more than " : "";
  return all === 0 ? `There is no task at any point from ${first} to ${last}: a run would do nothing.` : `${most}${countText(points, "point")}, from ${first} to ${last}: ${most}${countText(all, "task")}`;
}

/** Only what was said. */
export function optionsOf(texts: OptionTexts): RunOptions {
  return {
    ...pointsOf(texts),
    ...(texts.priority === "" ? {} : { priority: Number(texts.priority) }),
    ...(texts.paused ? { paused: true } : {}),
    ...(texts.mode === "live" ? {} : { mode: texts.mode }),
  };
}

/** The part of a refusal that is about a field: what names it, or quotes what was written in it. */
export function refusalOf(name: OptionField["name"], text: string, problem: Problem | null): string {
  const written = text.trim();
  if (problem === null || written === "") return "";
  const said = [...problem.placed.map((one) => one.message + (one.hint ? ` → ${one.hint}` : "")), ...problem.findings, problem.message];
  const named = new RegExp(`\\b${name}\\b.*(point|cycle)`, "i");
  const about = said.filter((one) => one.includes(`'${written}'`) || one.includes(`"${written}"`));
  return (about.find((one) => named.test(one)) ?? (said.find((one) => named.test(one) && one.includes(written)) ?? about[0])) ?? "";
}
