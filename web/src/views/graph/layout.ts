/** From tasks and edges to Graphviz' language and back: names never leave this page, only numbers do. */

export interface Box {
  id: string;
  width: number;
  height: number;
  /** Frames around it, from the outermost to the nearest. */
  frames: string[];
}

export interface Line {
  id: string;
  from: string;
  to: string;
  weight: number;
}

export interface LayoutRequest {
  boxes: Box[];
  lines: Line[];
  direction: "LR" | "TB";
  /** Between ranks, in inches: labels need room. */
  gap?: number;
}

export interface Placed {
  width: number;
  height: number;
  boxes: Map<string, { x: number; y: number }>; // the upper left corner
  lines: Map<string, { path: string; middle: { x: number; y: number } }>;
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

/** `frames` are the keys of clusters, in the order of their numbers. */
export function toDot(request: LayoutRequest): { dot: string; frames: { name: string; depth: number }[] } {
  const frames: { name: string; depth: number }[] = [];
  const lines = [
    `digraph { rankdir=${request.direction}; nodesep=0.22; ranksep=${request.gap ?? 0.5}; splines=true; node [shape=box fixedsize=true label=""]; edge [arrowhead=none];`,
  ];
  const draw = (tree: FrameTree, depth: number): void => {
    for (const number of tree.boxes) {
      const box = request.boxes[number];
      if (box) lines.push(`n${number} [width=${(box.width / INCH).toFixed(3)} height=${(box.height / INCH).toFixed(3)}];`);
    }
    for (const inner of tree.inner.values()) {
      // The label keeps room for the name; its text does not matter.
      lines.push(`subgraph cluster_${frames.length} { margin=14; label="x"; fontsize=14; labeljust=l;`);
      frames.push({ name: inner.name, depth });
      draw(inner, depth + 1);
      lines.push("}");
    }
  };
  draw(frameTree(request.boxes), 0);
  const places = new Map(request.boxes.map((box, number) => [box.id, number]));
  request.lines.forEach((line, number) => {
    const [from, to] = [places.get(line.from), places.get(line.to)];
    if (from !== undefined && to !== undefined) lines.push(`n${from} -> n${to} [id=e${number} weight=${line.weight}];`);
  });
  lines.push("}");
  return { dot: lines.join("\n"), frames };
}

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
  edges?: { id?: string; pos?: string }[];
}

/** Graphviz counts from the lower left, in points. */
export function fromDot(found: DotJson, request: LayoutRequest, frames: readonly { name: string; depth: number }[]): Placed {
  const [, , width = 0, height = 0] = numbers(found.bb);
  const placed: Placed = { width, height, boxes: new Map(), lines: new Map(), frames: [] };
  for (const one of found.objects ?? []) {
    const cluster = /^cluster_(\d+)$/.exec(one.name);
    if (cluster && one.bb) {
      const [x0 = 0, y0 = 0, x1 = 0, y1 = 0] = numbers(one.bb);
      const frame = frames[Number(cluster[1])];
      if (frame) placed.frames.push({ ...frame, x: x0, y: height - y1, width: x1 - x0, height: y1 - y0 });
      continue;
    }
    const box = request.boxes[Number(one.name.slice(1))];
    if (box === undefined || one.pos === undefined) continue;
    const [x = 0, y = 0] = numbers(one.pos);
    placed.boxes.set(box.id, { x: x - box.width / 2, y: height - y - box.height / 2 });
  }
  for (const edge of found.edges ?? []) {
    const line = request.lines[Number(edge.id?.slice(1))];
    if (line && edge.pos) placed.lines.set(line.id, spline(edge.pos, height));
  }
  return placed;
}

const numbers = (text: string): number[] => text.split(",").map(Number);

/** Of a curve of Bézier segments: where two of them meet, or the middle of the one in the midst. */
function middleOf(points: readonly { x: number; y: number }[]): { x: number; y: number } | undefined {
  const segments = Math.floor((points.length - 1) / 3);
  const [a, b, c, d] = points.slice(3 * Math.floor(segments / 2));
  if (segments % 2 === 0 || !a || !b || !c || !d) return a;
  return { x: (a.x + 3 * b.x + 3 * c.x + d.x) / 8, y: (a.y + 3 * b.y + 3 * c.y + d.y) / 8 };
}

/** "x,y x,y …", a Bézier curve of which every third point is on the line. */
export function spline(pos: string, height: number): { path: string; middle: { x: number; y: number } } {
  const points = pos
    .split(" ")
    .filter((part) => part !== "" && !part.startsWith("e,") && !part.startsWith("s,"))
    .map((part) => {
      const [x = 0, y = 0] = numbers(part);
      return { x, y: height - y };
    });
  const [head, ...rest] = points;
  if (head === undefined) return { path: "", middle: { x: 0, y: 0 } };
  const curve = rest.map((point) => `${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join(" ");
  const middle = middleOf(points) ?? head;
  return { path: `M${head.x.toFixed(1)} ${head.y.toFixed(1)}C${curve}`, middle };
}
