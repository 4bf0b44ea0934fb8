/** Boxes as the canvas wants them. One that is as it was stays the same object, and the canvas leaves it alone. */
import type { rowFilter } from "../../pages/run/filters";
import type { Drawing } from "./drawing";
import { countsText } from "./legible";
import type { Placed } from "./layout";
import { bunchText } from "./bunches";
import { foldText } from "../../pages/run/folds";
import type { BunchNode, FoldNode, FrameNode, GraphNode, GroupNode, TaskNode } from "./nodes";
import { markText, type Preview } from "./preview";

export interface Looks {
  selected: string | null;
  fits: ReturnType<typeof rowFilter>;
  preview: Preview | null;
  stop: string | null;
}

const STILL = { draggable: false, selectable: false, focusable: false } as const;

/** Tab comes to the graph once; arrows lead from box to box (`steps.ts`). */
const roving = (id: string) => ({ tabIndex: -1, "data-task": id });

export class KeptNodes {
  private kept = new Map<string, GraphNode>();

  of(drawing: Drawing, placed: Placed, looks: Looks): GraphNode[] {
    const found = [...framesOf(drawing, placed, looks), ...bunchesOf(drawing, placed), ...boxesOf(drawing, placed, looks)].map((node) => {
      const before = this.kept.get(node.id);
      return before !== undefined && isSame(before, node) ? before : node;
    });
    this.kept = new Map(found.map((node) => [node.id, node]));
    return found;
  }
}

function isSame(before: GraphNode, now: GraphNode): boolean {
  if (before.type !== now.type || before.ariaLabel !== now.ariaLabel || before.width !== now.width || before.height !== now.height) return false;
  if (before.position.x !== now.position.x || before.position.y !== now.position.y) return false;
  const [old, fresh] = [before.data as Record<string, unknown>, now.data as Record<string, unknown>];
  return Object.keys(fresh).length === Object.keys(old).length && Object.entries(fresh).every(([name, value]) => Object.is(old[name], value));
}

function framesOf(drawing: Drawing, placed: Placed, { preview, stop }: Looks): FrameNode[] {
  return placed.frames.map((frame) => ({
    id: `frame ${frame.depth} ${frame.name} ${Math.round(frame.x)} ${Math.round(frame.y)}`,
    type: "frame", position: { x: frame.x, y: frame.y }, width: frame.width, height: frame.height, zIndex: -2, ...STILL,
    data: { name: frame.name, depth: frame.depth, stop: frame.name === stop, until: preview !== null && frame.name === preview.until, picking: preview?.picking === true && drawing.points.has(frame.name) },
  }));
}

/** `said`: how many have which state, unless there is no run. */
export function bunchesOf(drawing: Drawing, placed: Placed, said: (states: readonly string[]) => string = countsText): BunchNode[] {
  return placed.bunches.map(({ id, members, x, y, width, height }) => ({
    id, type: "bunch", position: { x, y }, width, height, zIndex: -1, ...STILL,
    data: {
      text: bunchText(members.map((one) => drawing.tasks.get(one)?.name ?? "")),
      counts: said(members.flatMap((one) => drawing.tasks.get(one)?.state || [])),
      head: Math.min(...members.map((one) => placed.boxes.get(one)?.y ?? Infinity)) - y,
    },
  }));
}

/** In bunches nothing leads from one task to another: those that are joined to the selected one. */
function besideOf({ edges, boxes }: Drawing, { bunches }: Placed, selected: string | null): ReadonlySet<string> {
  if (selected === null || bunches.length === 0 || !boxes.some((box) => box.id === selected)) return new Set();
  const inBunches = new Set(bunches.flatMap((bunch) => bunch.members));
  return new Set([...edges.values()].flatMap(({ from, to }) => (from === selected ? [to] : to === selected ? [from] : [])).filter((id) => inBunches.has(id)));
}

function boxesOf(drawing: Drawing, placed: Placed, { selected, fits, preview }: Looks): (TaskNode | GroupNode | FoldNode)[] {
  const found: (TaskNode | GroupNode | FoldNode)[] = [];
  const beside = besideOf(drawing, placed, selected);
  for (const { id, width, height, frames } of drawing.boxes) {
    const position = placed.boxes.get(id);
    if (position === undefined) continue; // not placed yet
    const task = drawing.tasks.get(id);
    const group = drawing.groups.get(id);
    const fold = drawing.folds.get(id);
    const mark = preview?.marks.get(id);
    if (task) {
      found.push({
        id, type: "task", position, width, height, focusable: true, domAttributes: roving(id), ariaLabel: [id, task.state, markText(mark)].filter(Boolean).join(", "),
        data: { task, framed: frames[0] === task.point, selected: id === selected, beside: beside.has(id), faded: preview === null ? !fits(task) : mark === undefined, ...(mark ? { mark } : {}) },
      });
    } else if (fold) found.push({ id, type: "fold", position, width, height, focusable: true, domAttributes: roving(id), ariaLabel: `${id}, ${foldText(fold)}, folded`, data: { fold } });
    else if (group) found.push({ id, type: "family", position, width, height, data: { group }, ...STILL });
  }
  return found;
}
