/** From tasks and edges to Graphviz' language and back: names never leave this page, only numbers do. */

export interface Box {
  id: string;
  width: number;
  height: number;
  /** Frames around it, from the outermost to the nearest. */
  frames: string[];
  /** What it holds, if it is a bunch: `at` is counted from its upper left corner. */
  members?: (Box & { at: Place })[];
}

export interface Line {
  id: string;
  from: string;
  to: string;
  weight: number;
  /** Room for what is written on it. */
  label?: { width: number; height: number };
}

export interface Place {
  x: number;
  y: number;
}

export interface PlacedLine {
  path: string;
  /** Where its arrow begins and ends. */
  head: { from: Place; to: Place } | null;
  /** The middle of what is written on it. */
  label: Place;
}

export interface LayoutRequest {
  boxes: Box[];
  lines: Line[];
  direction: "LR" | "TB";
}

export interface Placed {
  width: number;
  height: number;
  boxes: Map<string, Place>; // the upper left corner
  lines: Map<string, PlacedLine>;
  bunches: { id: string; members: string[]; x: number; y: number; width: number; height: number }[];
  frames: { name: string; depth: number; x: number; y: number; width: number; height: number }[];
}

const INCH = 72;
const SEPARATOR = "\u0000";

interface FrameTree {
  key: string;
  name: string;
  boxes: number[];
  inner: Map<string, FrameTree>;
}

export function frameTree(boxes: readonly Box[]): FrameTree {
  const root: FrameTree = { key: "", name: "", boxes: [], inner: new Map() };
  boxes.forEach((box, number) => {
    let at = root;
    for (const name of box.frames) {
      let next = at.inner.get(name);
      if (next === undefined) {
        next = { key: at.key === "" ? name : at.key + SEPARATOR + name, name, boxes: [], inner: new Map() };
        at.inner.set(name, next);
      }
      at = next;
    }
    at.boxes.push(number);
  });
  return root;
}

/** `frames` are the keys of clusters, in the order of their numbers; `turned`: it will be drawn upside down. */
export function toDot(request: LayoutRequest, turned = false): { dot: string; frames: { name: string; depth: number }[] } {
  const frames: { name: string; depth: number }[] = [];
  const lines = [
    `digraph { rankdir=${request.direction}; nodesep=0.22; ranksep=0.5; splines=true; node [shape=box fixedsize=true label=""]; edge [arrowsize=0.8];`,
  ];
  const draw = (tree: FrameTree, depth: number): void => {
    for (const number of tree.boxes) {
      const box = request.boxes[number];
      if (box) lines.push(`n${number} [width=${(box.width / INCH).toFixed(3)} height=${(box.height / INCH).toFixed(3)}];`);
    }
    for (const inner of tree.inner.values()) {
      // The label keeps room for the name; its text does not matter.
      lines.push(`subgraph cluster_${frames.length} { margin=14; label="x"; fontsize=14; labeljust=l; labelloc=${turned && request.direction === "LR" ? "b" : "t"};`);
      frames.push({ name: inner.name, depth });
      draw(inner, depth + 1);
      lines.push("}");
    }
  };
  draw(frameTree(request.boxes), 0);
  const places = new Map(request.boxes.map((box, number) => [box.id, number]));
  request.lines.forEach((line, number) => {
    const [from, to] = [places.get(line.from), places.get(line.to)];
    if (from !== undefined && to !== undefined) lines.push(`n${from} -> n${to} [id=e${number} weight=${line.weight}${line.label ? ` label=${room(line.label)}` : ""}];`);
  });
  lines.push("}");
  return { dot: lines.join("\n"), frames };
}

/** A label without a text, of this size. */
const room = ({ width, height }: { width: number; height: number }): string =>
  `<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0" FIXEDSIZE="TRUE" WIDTH="${Math.ceil(width)}" HEIGHT="${Math.ceil(height)}"><TR><TD></TD></TR></TABLE>>`;

interface DotObject {
  name: string;
  bb?: string;
  pos?: string;
  width?: string;
  height?: string;
}

export interface DotJson {
  bb: string;
  objects?: DotObject[];
  edges?: { id?: string; pos?: string; lp?: string }[];
}

/** Where the upper left corner is drawn, and whether what Graphviz has last comes first: below each other, or beside each other. */
export interface Corner extends Place {
  turned: boolean;
}

/** Graphviz counts from the lower left, in points. */
export function fromDot(found: DotJson, request: LayoutRequest, frames: readonly { name: string; depth: number }[], corner: Corner = { x: 0, y: 0, turned: false }): Placed {
  const [, , width = 0, height = 0] = numbers(found.bb);
  const placed: Placed = { width, height, boxes: new Map(), lines: new Map(), bunches: [], frames: [] };
  const [across, up] = request.direction === "TB" ? [corner.turned, true] : [false, !corner.turned];
  const at = (x: number, y: number): Place => ({ x: corner.x + (across ? width - x : x), y: corner.y + (up ? height - y : y) });
  for (const one of found.objects ?? []) {
    const cluster = /^cluster_(\d+)$/.exec(one.name);
    if (cluster && one.bb) {
      const [x0 = 0, y0 = 0, x1 = 0, y1 = 0] = numbers(one.bb);
      const frame = frames[Number(cluster[1])];
      const [low, high] = [at(x0, y0), at(x1, y1)];
      if (frame) placed.frames.push({ ...frame, x: Math.min(low.x, high.x), y: Math.min(low.y, high.y), width: x1 - x0, height: y1 - y0 });
      continue;
    }
    const box = request.boxes[Number(one.name.slice(1))];
    if (box === undefined || one.pos === undefined) continue;
    const [x = 0, y = 0] = numbers(one.pos);
    const middle = at(x, y);
    put(placed, box, { x: middle.x - box.width / 2, y: middle.y - box.height / 2 });
  }
  for (const edge of found.edges ?? []) {
    const line = request.lines[Number(edge.id?.slice(1))];
    if (line && edge.pos) placed.lines.set(line.id, spline(edge.pos, at, edge.lp));
  }
  return placed;
}

function put(placed: Placed, { id, width, height, members }: Box, { x, y }: Place): void {
  if (members === undefined) placed.boxes.set(id, { x, y });
  else placed.bunches.push({ id, members: members.map((one) => one.id), x, y, width, height });
  for (const { id: member, at } of members ?? []) placed.boxes.set(member, { x: x + at.x, y: y + at.y });
}

const numbers = (text: string): number[] => text.split(",").map(Number);

/** Of a curve of Bézier segments: where two of them meet, or the middle of the one in the midst. */
function middleOf(points: readonly Place[]): Place | undefined {
  const segments = Math.floor((points.length - 1) / 3);
  const [a, b, c, d] = points.slice(3 * Math.floor(segments / 2));
  if (segments % 2 === 0 || !a || !b || !c || !d) return a;
  return { x: (a.x + 3 * b.x + 3 * c.x + d.x) / 8, y: (a.y + 3 * b.y + 3 * c.y + d.y) / 8 };
}

/** "e,x,y x,y x,y …": where the arrow ends, then a Bézier curve of which every third point is on the line; it ends where the arrow begins. */
export function spline(pos: string, at: (x: number, y: number) => Place, label?: string): PlacedLine {
  const place = (text: string): Place => {
    const [x = 0, y = 0] = numbers(text);
    return at(x, y);
  };
  const parts = pos.split(" ").filter((part) => part !== "");
  const tip = parts.find((part) => part.startsWith("e,"));
  const points = parts.filter((part) => !part.startsWith("e,") && !part.startsWith("s,")).map(place);
  const [first, ...rest] = points;
  const last = points.at(-1);
  if (first === undefined || last === undefined) return { path: "", head: null, label: { x: 0, y: 0 } };
  const curve = rest.map((point) => `${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join(" ");
  return {
    path: `M${first.x.toFixed(1)} ${first.y.toFixed(1)}C${curve}`,
    head: tip === undefined ? null : { from: last, to: place(tip.slice(2)) },
    label: label === undefined ? (middleOf(points) ?? first) : place(label),
  };
}

const HALF = 0.42; // of an arrow's width, for its length

/** A filled triangle. */
export function arrowPath({ from, to }: { from: Place; to: Place }): string {
  const [across, down] = [(to.y - from.y) * HALF, (to.x - from.x) * HALF];
  const at = (x: number, y: number): string => `${x.toFixed(1)} ${y.toFixed(1)}`;
  return `M${at(to.x, to.y)}L${at(from.x - across, from.y + down)}L${at(from.x + across, from.y - down)}Z`;
}
