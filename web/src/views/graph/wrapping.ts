/**
 * A long chain in rows, as text is.
 *
 * Theory of operation. Graphviz draws sixty tasks one behind the other as a line that is as long as sixty boxes and as high as one: shown
 * whole, nobody reads it. Where all boxes are in the same frames, such a drawing is cut between its boxes, and its pieces are put below
 * each other. A line within a piece moves with it; one from a piece to the next goes back below the boxes. A drawing with a line over
 * more than one cut, or with many through one, stays as it is: in rows it would be harder to follow, not easier. What goes down is
 * turned, cut and turned back.
 */
import type { Box, LayoutRequest, Place, Placed, PlacedLine } from "./layout";

const LONG = 6; // its length for its breadth: of what is longer
const LENGTH_MIN = 2_600; // what is shorter is read as it is
const SHAPE = 1.9; // of all rows together, about that of a window
const GUTTER = 34; // between two rows: for lines that go back
const BACK_MAX = 3; // lines from one row to the next
const BEND = 7; // with the arrow it stays within the frame
const ARROW = 8;

interface Span {
  id: string;
  x: number;
  y: number;
  width: number;
  height: number;
}

interface Cuts {
  /** Where each row begins; the first at the left of everything. */
  begins: number[];
  rowOf: Map<string, number>;
  pitch: number;
  spans: Map<string, Span>;
}

export function wrapped(placed: Placed, request: LayoutRequest): Placed {
  if (request.direction === "TB") return turned(inRows(turned(placed), request.boxes.map((box) => ({ ...box, width: box.height, height: box.width })), request, 1 / SHAPE));
  return inRows(placed, request.boxes, request, SHAPE);
}

function inRows(placed: Placed, boxes: readonly Box[], { lines }: LayoutRequest, shape: number): Placed {
  const isOneFrame = new Set(boxes.map((box) => JSON.stringify(box.frames))).size === 1;
  if (!isOneFrame || placed.width < Math.max(LENGTH_MIN, LONG * placed.height)) return placed;
  const cuts = cutsOf(spansOf(placed, boxes), shape);
  const steps = lines.map(({ from, to }) => [cuts.rowOf.get(from) ?? 0, cuts.rowOf.get(to) ?? 0] as const);
  const through = cuts.begins.map((_, row) => steps.filter(([from, to]) => from === row && to === row + 1).length);
  if (cuts.begins.length < 2 || steps.some(([from, to]) => to < from || to > from + 1) || through.some((count) => count > BACK_MAX)) return placed;
  return cutUp(placed, lines, cuts);
}

function spansOf(placed: Placed, boxes: readonly Box[]): Span[] {
  const bunches = new Map(placed.bunches.map((bunch) => [bunch.id, bunch]));
  return boxes.flatMap(({ id, width, height }) => {
    const at = placed.boxes.get(id) ?? bunches.get(id);
    return at === undefined ? [] : [{ id, x: at.x, y: at.y, width, height }];
  }).sort((a, b) => a.x - b.x);
}

/** Rows of about the same length, cut where no box is. */
function cutsOf(spans: readonly Span[], shape: number): Cuts {
  const [left, right] = [Math.min(...spans.map((one) => one.x)), Math.max(...spans.map((one) => one.x + one.width))];
  const pitch = Math.max(...spans.map((one) => one.y + one.height)) - Math.min(...spans.map((one) => one.y)) + GUTTER;
  const length = Math.sqrt((right - left) * pitch * shape);
  const begins = [left];
  const rowOf = new Map<string, number>();
  let reached = -Infinity;
  for (const { id, x, width } of spans) {
    if (x > reached && x + width - (begins.at(-1) ?? left) > length) begins.push(x);
    reached = Math.max(reached, x + width);
    rowOf.set(id, begins.length - 1);
  }
  return { begins, rowOf, pitch, spans: new Map(spans.map((one) => [one.id, one])) };
}

function cutUp(placed: Placed, lines: LayoutRequest["lines"], { begins, rowOf, pitch, spans }: Cuts): Placed {
  const all = [...spans.values()];
  const [left, top] = [begins[0] ?? 0, Math.min(...all.map((one) => one.y))];
  const shiftOf = (row: number): Place => ({ x: left - (begins[row] ?? left), y: row * pitch });
  const moved = <Thing extends Place>(thing: Thing, row: number): Thing => ({ ...thing, x: thing.x + shiftOf(row).x, y: thing.y + shiftOf(row).y });
  const unitOf = new Map(placed.bunches.flatMap((bunch) => bunch.members.map((member) => [member, bunch.id])));
  const rows = new Map(all.map((one) => [one.id, moved(one, rowOf.get(one.id) ?? 0)]));
  const shorter = Math.max(...all.map((one) => one.x + one.width)) - Math.max(...[...rows.values()].map((one) => one.x + one.width));
  const higher = (begins.length - 1) * pitch;
  const found = new Map(placed.lines);
  for (const { id, from, to } of lines) {
    const [line, row, source, target] = [placed.lines.get(id), rowOf.get(from) ?? 0, rows.get(from), rows.get(to)];
    if (line === undefined || source === undefined || target === undefined) continue;
    found.set(id, row === rowOf.get(to) ? shifted(line, shiftOf(row)) : back(source, target, top + (row + 1) * pitch - GUTTER / 2));
  }
  return {
    width: placed.width - shorter, height: placed.height + higher, lines: found,
    boxes: new Map([...placed.boxes].map(([id, place]) => [id, moved(place, rowOf.get(unitOf.get(id) ?? id) ?? 0)])),
    bunches: placed.bunches.map((bunch) => moved(bunch, rowOf.get(bunch.id) ?? 0)),
    frames: placed.frames.map((frame) => ({ ...frame, width: frame.width - shorter, height: frame.height + higher })),
  };
}

/** From the end of a row to the beginning of the next, through the gutter between them. */
function back(source: Span, target: Span, gutter: number): PlacedLine {
  const [from, to] = [{ x: source.x + source.width, y: source.y + source.height / 2 }, { x: target.x, y: target.y + target.height / 2 }];
  const tip = to.x - ARROW;
  const points = [
    [from.x + BEND, from.y], [from.x + BEND, gutter], [from.x, gutter],
    [from.x, gutter], [tip, gutter], [tip, gutter],
    [tip - BEND, gutter], [tip - BEND, to.y], [tip, to.y],
  ];
  const curve = points.map(([x = 0, y = 0]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join(" ");
  return { path: `M${from.x.toFixed(1)} ${from.y.toFixed(1)}C${curve}`, head: { from: { x: tip, y: to.y }, to }, label: { x: (from.x + to.x) / 2, y: gutter } };
}

const eachPlace = (line: PlacedLine, change: (place: Place) => Place): PlacedLine => ({
  path: line.path.replace(/(-?[\d.]+) (-?[\d.]+)/g, (_, x: string, y: string) => {
    const place = change({ x: Number(x), y: Number(y) });
    return `${place.x.toFixed(1)} ${place.y.toFixed(1)}`;
  }),
  head: line.head && { from: change(line.head.from), to: change(line.head.to) },
  label: change(line.label),
});

const shifted = (line: PlacedLine, by: Place): PlacedLine => eachPlace(line, ({ x, y }) => ({ x: x + by.x, y: y + by.y }));

function turned(placed: Placed): Placed {
  const turn = <Thing extends Place>(thing: Thing): Thing => ({ ...thing, x: thing.y, y: thing.x });
  const turnSize = <Thing extends Span | Placed["frames"][number]>(thing: Thing): Thing => ({ ...turn(thing), width: thing.height, height: thing.width });
  return {
    width: placed.height, height: placed.width,
    boxes: new Map([...placed.boxes].map(([id, place]) => [id, turn(place)])),
    lines: new Map([...placed.lines].map(([id, line]) => [id, eachPlace(line, turn)])),
    bunches: placed.bunches.map(turnSize), frames: placed.frames.map(turnSize),
  };
}
