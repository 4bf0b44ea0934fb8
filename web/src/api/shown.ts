/** How people call the tasks of the run on the screen: by their ids, in a run of stages by name; nobody has written a point there. */
import type { LiveState } from "./live";
import { isDated, sharedPoint, shortTask } from "../ui/points";
import { currentLive } from "./runLive";

type Known = Pick<LiveState, "stages" | "nodes">;

const NOTHING: Known = { stages: false, nodes: {} };
const known = (): Known => currentLive()?.snapshot() ?? NOTHING;

/** Whether the run on the screen is one of stages. */
export const isOfStages = (): boolean => known().stages;

/** A stage with for_each is `image<item>` to programs. */
export const stageName = (node: string): string => node.replace(/<.*$/, "");

/** A task, or a family at a point. */
export function shownId(id: string, { stages, nodes }: Known = known()): string {
  if (!stages) return id;
  const name = id.slice(id.indexOf("/") + 1);
  return nodes[name]?.shown ?? stageName(name);
}

/** As short as the run on the screen allows: "member_07 · 02Z" where all points are of one day; the whole id belongs into a title beside it. */
export function shortId(id: string): string {
  const point = id.slice(0, Math.max(0, id.indexOf("/")));
  return isOfStages() || !isDated(point) ? shownId(id) : shortTask(id, pointsAround());
}

/** For shortPoint, among all points of the run on the screen. */
export function pointsAround(): string {
  const points = currentLive()?.snapshot().points ?? [];
  let shared = around.get(points);
  if (shared === undefined) around.set(points, (shared = sharedPoint(points)));
  return shared;
}

const around = new WeakMap<readonly string[], string>();

/** One of many: a task, in a run of stages a stage. */
export const taskWord = (): string => (isOfStages() ? "stage" : "task");
