/**
 * Points in their order, the earlier above or left of the later.
 *
 * Theory of operation. Graphviz crosses as few lines as it can and does not care which frame comes first. Frames that no line joins
 * are placed apart and put below each other (or beside, where the graph goes down) in the order in which they were given. Of frames
 * that are joined more may stand in the wrong order than in the right one: then the drawing is turned upside down, which crosses no
 * other lines than before.
 */
import { fromDot, toDot, type Box, type DotJson, type LayoutRequest, type Placed } from "./layout";
import { wrapped } from "./wrapping";

type LayOut = (dot: string) => DotJson;

export function placedInOrder(request: LayoutRequest, layOut: LayOut): Placed {
  const whole: Placed = { width: 0, height: 0, boxes: new Map(), lines: new Map(), bunches: [], frames: [] };
  for (const part of partsOf(request)) {
    const below = request.direction === "LR";
    const placed = wrapped(placedPart(part, layOut, below ? { x: 0, y: whole.height } : { x: whole.width, y: 0 }), part);
    for (const [id, place] of placed.boxes) whole.boxes.set(id, place);
    for (const [id, line] of placed.lines) whole.lines.set(id, line);
    whole.frames.push(...placed.frames);
    whole.bunches.push(...placed.bunches);
    whole.width = below ? Math.max(whole.width, placed.width) : whole.width + placed.width;
    whole.height = below ? whole.height + placed.height : Math.max(whole.height, placed.height);
  }
  return whole;
}

function placedPart(part: LayoutRequest, layOut: LayOut, at: { x: number; y: number }): Placed {
  const placed = (turned: boolean) => {
    const { dot, frames } = toDot(part, turned);
    return fromDot(layOut(dot), part, frames, { ...at, turned });
  };
  const found = placed(false);
  if (wrongOf(found, part) <= 0) return found;
  const turned = placed(true);
  return wrongOf(turned, part) < wrongOf(found, part) ? turned : found;
}

const outermost = (box: Box): string => box.frames[0] ?? "";

/** What hangs together by lines between its outermost frames; in the order of the first box of each. Boxes without a frame stay together. */
export function partsOf(request: LayoutRequest): LayoutRequest[] {
  const frameOf = new Map(request.boxes.map((box) => [box.id, outermost(box)]));
  const leader = new Map([...frameOf.values()].map((frame) => [frame, frame]));
  const leaderOf = (frame: string): string => {
    let at = frame;
    for (let next = leader.get(at) ?? at; next !== at; next = leader.get(at) ?? at) at = next;
    leader.set(frame, at); // a shorter way for the next who asks
    return at;
  };
  for (const { from, to } of request.lines) {
    const [one, other] = [frameOf.get(from), frameOf.get(to)];
    if (one !== undefined && other !== undefined && one !== other) leader.set(leaderOf(other), leaderOf(one));
  }
  const parts = new Map<string, LayoutRequest>();
  const partOf = (frame: string): LayoutRequest => {
    const key = leaderOf(frame);
    const part = parts.get(key) ?? { boxes: [], lines: [], direction: request.direction };
    parts.set(key, part);
    return part;
  };
  for (const box of request.boxes) partOf(outermost(box)).boxes.push(box);
  for (const line of request.lines) {
    const frame = frameOf.get(line.from);
    if (frame !== undefined && frameOf.has(line.to)) partOf(frame).lines.push(line);
  }
  return [...parts.values()];
}

/** Of outermost frames that lie above each other (or beside): how many more pairs are in the wrong order than in the right one. */
function wrongOf({ frames }: Placed, { boxes, direction }: LayoutRequest): number {
  const order = new Map([...new Set(boxes.map(outermost))].map((name, place) => [name, place]));
  const along = direction === "LR" ? ({ y, height, x, width }: Span) => [y + height / 2, x, x + width] as const : ({ y, height, x, width }: Span) => [x + width / 2, y, y + height] as const;
  const known = frames.filter((frame) => frame.depth === 0).map((frame) => ({ rank: order.get(frame.name) ?? 0, span: along(frame) })).sort((a, b) => a.rank - b.rank);
  let wrong = 0;
  known.forEach(({ span: [first, begins, ends] }, place) => {
    for (const { span: [later, laterBegins, laterEnds] } of known.slice(place + 1)) {
      if (laterBegins < ends && begins < laterEnds) wrong += later < first ? 1 : -1;
    }
  });
  return wrong;
}

interface Span {
  x: number;
  y: number;
  width: number;
  height: number;
}
