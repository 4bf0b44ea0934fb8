/** What is known of a stage, in words. */
import type { StageDocument, StageFile } from "../../api/registry";
import { bytesText, countText } from "../../ui/quantities";
import { durationText } from "../../ui/time";
import { textOf } from "./parameters";

type Resource = StageDocument["resources"][number];

const named = (what: string, name: string | undefined): string => (name ? ` ${what} ${name}` : "");

export function resourceText({ type, number = 1, flavour, exclusive, value = 0, label }: Resource): string {
  if (type === "nodes") return `${countText(number, "node")}${named("of", flavour)}${named("labelled", label)}${exclusive ? ", exclusive" : ""}`;
  if (type === "cpu") return countText(value, "core");
  return `${bytesText(value)} of ${type}${named("labelled", label)}`;
}

export function elementsText({ max, count, items = [], parameter, stage, output }: NonNullable<StageDocument["for_each"]>): string {
  if (count !== undefined) return `${countText(count, "element")}: ${items.map(textOf).join(", ")}${count > items.length ? ", …" : ""}`;
  if (stage === undefined) return parameter ? `the elements of parameter ${parameter}, at most ${max}` : `a list that a request gives, of at most ${countText(max, "element")}`;
  return output === undefined ? `the same elements as ${stage}; each element waits for the same element of ${stage}` : `output ${output} of ${stage}, at most ${countText(max, "element")}`;
}

/** The lines that unfold, without those that say nothing. */
export function factsOf(stage: StageDocument): [what: string, text: string][] {
  const waits = stage.dependencies.map((one) => (one.type === "stage" ? `${one.value} ${one.condition}` : `buffer object ${one.value} ${one.condition}`));
  const needs = [
    ...(stage.allow.length > 0 ? [`a worker that allows ${stage.allow.join(", ")} (${stage.allow.map((one) => `--allow-compose ${one}`).join(" ")})`] : []),
    ...(stage.compose_2.length > 0 ? [`a worker with docker compose 2, because of ${stage.compose_2.join(", ")}`] : []),
    ...stage.externals,
  ];
  const facts: [string, string][] = [
    ["Depends on", waits.join(", ")],
    ["Needs", needs.join("; ")],
    ["Resources", stage.resources.map(resourceText).join("; ")],
    ["Timeout", stage.timeout_seconds === null ? "none" : durationText(stage.timeout_seconds)],
    ["When", stage.when ? "" : "switched off: it is skipped, and the stages after it continue"],
    ["For each", stage.for_each === null ? "" : elementsText(stage.for_each)],
    ["Until", stage.until.length === 0 ? "" : `${stage.until.join(", ")} ended; then this stage, which is a service, is ended, too`],
    ["Outputs", stage.outputs.join(", ")],
  ];
  return facts.filter(([, text]) => text !== "");
}

/** What is executed comes first. */
export const inOrder = ({ executes, files }: StageDocument): StageFile[] =>
  [...files].sort((one, other) => Number(other.path === executes) - Number(one.path === executes));
