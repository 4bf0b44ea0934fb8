/**
 * Tasks that stand alike in the graph, gathered into one bunch of rows and columns.
 *
 * Theory of operation. Graphviz puts the three hundred children of a task below each other, and nobody can read a column of three
 * hundred boxes. Tasks are alike if they are at the same point, in the same frames, and joined in the same way to tasks that are alike:
 * the coarsest such division is found by telling tasks apart by what they are joined to, again and again, until nothing new is told
 * apart. Graphviz then sees each bunch as one box, and the lines between two bunches as one; in a graph without circles these have
 * none either. States do not count: a bunch stays as it is while its tasks run.
 */
import type { Box } from "./layout";

export const BUNCH_MIN = 10; // tasks; fewer are read as well below each other
const GAP_ACROSS = 14;
const GAP_DOWN = 10;
const MARGIN = 12;
const HEAD = 20; // for the words above the rows, at least
const HEAD_PART = 0.035; // of the rows: what is larger is looked at from farther away
const SHAPE = 1.7; // its width for its height: about that of a window

/** `apart`: what must be equal for tasks to be gathered; null: never. */
export interface Candidate {
  box: Box;
  apart: string | null;
}

export interface Joint {
  from: string;
  to: string;
  /** Only lines of one kind are drawn as one. */
  kind: string;
}

export interface Gathered {
  /** What Graphviz places: bunches, and the boxes that are in none. */
  boxes: Box[];
  /** Every box, those within bunches as wide as the others there. */
  all: Box[];
  /** From the id of a box to that of its bunch, or to itself. */
  unitOf: ReadonlyMap<string, string>;
}

const inOrder = new Intl.Collator("en", { numeric: true }).compare;

export function gathered(candidates: readonly Candidate[], joints: readonly Joint[]): Gathered {
  const classes = candidates.length < BUNCH_MIN ? [] : alike(candidates, joints).filter((boxes) => boxes.length >= BUNCH_MIN);
  const bunches = new Map<string, Box>(); // by its first member's id
  const unitOf = new Map(candidates.map(({ box }) => [box.id, box.id]));
  const wide = new Map<string, Box>();
  for (const boxes of classes) {
    const bunch = bunchOf(boxes);
    bunches.set(boxes[0]?.id ?? "", bunch);
    for (const box of bunch.members ?? []) {
      unitOf.set(box.id, bunch.id);
      wide.set(box.id, { ...box, frames: bunch.frames });
    }
  }
  const boxes = candidates.flatMap(({ box }) => bunches.get(box.id) ?? (wide.has(box.id) ? [] : [box]));
  return { boxes, all: candidates.map(({ box }) => wide.get(box.id) ?? box), unitOf };
}

/** Classes of what is alike, each in the order in which it was given. */
function alike(candidates: readonly Candidate[], joints: readonly Joint[]): Box[][] {
  const [before, behind] = [stepsTo(joints.map(({ from, to }) => [from, to])), stepsTo(joints.map(({ from, to }) => [to, from]))];
  // What lies differently deep is joined differently: a long chain is told apart at once, not from its ends inwards.
  let classOf = numbered(candidates.map(({ box, apart }) => [box.id, apart === null ? `only ${box.id}` : JSON.stringify([apart, box.frames, box.height, before.get(box.id), behind.get(box.id)])]));
  for (let known = 0; known < classOf.count && largest(classOf.of) >= BUNCH_MIN; ) {
    known = classOf.count;
    classOf = toldApart(classOf.of, joints);
  }
  const found = new Map<number, Box[]>();
  for (const { box } of candidates) {
    const number = classOf.of.get(box.id) ?? 0;
    const boxes = found.get(number);
    if (boxes === undefined) found.set(number, [box]);
    else boxes.push(box);
  }
  for (const { from, to } of joints) {
    const number = classOf.of.get(from);
    if (number !== undefined && number === classOf.of.get(to)) found.delete(number); // a circle
  }
  return [...found.values()];
}

/** One step further: by what each is joined to. */
function toldApart(classOf: ReadonlyMap<string, number>, joints: readonly Joint[]): Classes {
  const seen = new Map([...classOf.keys()].map((id) => [id, [] as string[]]));
  for (const { from, to, kind } of joints) {
    seen.get(from)?.push(`> ${classOf.get(to)} ${kind}`);
    seen.get(to)?.push(`< ${classOf.get(from)} ${kind}`);
  }
  return numbered([...seen].map(([id, joined]) => [id, `${classOf.get(id)}\n${joined.sort().join("\n")}`]));
}

function largest(classOf: ReadonlyMap<string, number>): number {
  const counts = new Map<number, number>();
  for (const number of classOf.values()) counts.set(number, (counts.get(number) ?? 0) + 1);
  return Math.max(0, ...counts.values());
}

/** The longest way to each; what is in a circle, or behind one, has none. */
function stepsTo(pairs: readonly (readonly [string, string])[]): Map<string, number> {
  const open = new Map<string, number>(); // ways that nobody has gone yet
  const nexts = new Map<string, string[]>();
  for (const [from, to] of pairs) {
    open.set(from, open.get(from) ?? 0);
    open.set(to, (open.get(to) ?? 0) + 1);
    const known = nexts.get(from);
    if (known === undefined) nexts.set(from, [to]);
    else known.push(to);
  }
  const steps = new Map([...open].filter(([, count]) => count === 0).map(([id]) => [id, 0]));
  const lengths = new Map(steps);
  for (const [id, length] of steps) { // what is added is walked, too
    for (const next of nexts.get(id) ?? []) {
      lengths.set(next, Math.max(lengths.get(next) ?? 0, length + 1));
      const left = (open.get(next) ?? 0) - 1;
      open.set(next, left);
      if (left === 0) steps.set(next, lengths.get(next) ?? 0);
    }
  }
  return steps;
}

interface Classes {
  of: Map<string, number>;
  count: number;
}

function numbered(words: readonly (readonly [string, string])[]): Classes {
  const numbers = new Map<string, number>();
  const of = new Map<string, number>();
  for (const [id, word] of words) {
    const number = numbers.get(word) ?? numbers.size;
    numbers.set(word, number);
    of.set(id, number);
  }
  return { of, count: numbers.size };
}

/** Read row by row, in the order of their names. */
function bunchOf(boxes: readonly Box[]): Box {
  const [first] = boxes;
  const width = Math.max(...boxes.map((box) => box.width));
  const height = first?.height ?? 0;
  const [across, down] = [width + GAP_ACROSS, height + GAP_DOWN];
  const columns = Math.max(1, Math.min(boxes.length, Math.round(Math.sqrt((SHAPE * boxes.length * down) / across))));
  const rows = Math.ceil(boxes.length / columns);
  const head = Math.max(HEAD, Math.ceil(HEAD_PART * rows * down));
  const members = [...boxes].sort((a, b) => inOrder(a.id, b.id)).map((box, number) => ({
    ...box, width, at: { x: MARGIN + (number % columns) * across, y: head + MARGIN / 2 + Math.floor(number / columns) * down },
  }));
  return {
    id: `bunch of ${first?.id}`, frames: first?.frames ?? [], members,
    width: 2 * MARGIN + columns * across - GAP_ACROSS, height: head + MARGIN * 1.5 + rows * down - GAP_DOWN,
  };
}

/** What the names of all of them begin with, and how many there are. */
export function bunchText(names: readonly string[]): string {
  const [first = ""] = names;
  let length = first.length;
  for (const name of names) while (!name.startsWith(first.slice(0, length))) length -= 1;
  const stem = first.slice(0, length).replace(/[0-9]+$/, "");
  return stem.length < 2 ? `${names.length} tasks` : `${names.length} × ${stem}…`;
}
