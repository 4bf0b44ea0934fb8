/**
 * Arrow keys in a graph: the one in the direction of its edges follows them, against it leads back; beside it, and where no edge
 * leads, to the nearest box there.
 */
import type { Drawing } from "./drawing";
import type { Placed } from "./layout";

interface Spot {
  id: string;
  x: number;
  y: number;
}

type Side = [x: -1 | 0 | 1, y: -1 | 0 | 1];
const SIDES: Readonly<Record<string, Side>> = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
const ASIDE = 2.5; // how much farther it is to what is not straight ahead

/** The box that a key leads to; null: none. `at` null: the graph has just been reached. */
export function stepFrom(key: string, at: string | null, drawing: Drawing, placed: Placed): string | null {
  const spots = spotsOf(drawing, placed);
  if (key === "Home" || key === "End") return inOrder(spots, drawing.request.direction).at(key === "Home" ? 0 : -1)?.id ?? null;
  const side = SIDES[key];
  const here = spots.find((spot) => spot.id === at);
  if (side === undefined || here === undefined) return null;
  const [along] = drawing.request.direction === "LR" ? [side[0]] : [side[1]];
  if (along !== 0) {
    const joined = new Set(neighbours(here.id, along, drawing));
    const next = nearest(here, spots.filter((spot) => joined.has(spot.id)), () => 1);
    if (next !== null) return next;
  }
  return nearest(here, spots, (spot) => ahead(here, spot, side));
}

/** Where one begins: at the selected task, else at one that failed, else at the first. */
export function startAt(selected: string | null, drawing: Drawing, placed: Placed): string | null {
  if (selected !== null && placed.boxes.has(selected) && drawing.tasks.has(selected)) return selected;
  const ordered = inOrder(spotsOf(drawing, placed), drawing.request.direction);
  const failed = ordered.find(({ id }) => ["failed", "submit-failed"].includes(drawing.tasks.get(id)?.state ?? ""));
  return (failed ?? ordered[0])?.id ?? null;
}

function spotsOf({ boxes, tasks, folds }: Drawing, placed: Placed): Spot[] {
  return boxes.flatMap(({ id, width, height }) => {
    const place = placed.boxes.get(id);
    return place === undefined || !(tasks.has(id) || folds.has(id)) ? [] : [{ id, x: place.x + width / 2, y: place.y + height / 2 }];
  });
}

const inOrder = (spots: readonly Spot[], direction: "LR" | "TB"): Spot[] =>
  [...spots].sort((a, b) => (direction === "LR" ? a.x - b.x || a.y - b.y : a.y - b.y || a.x - b.x));

/** What an edge leads to, or comes from; through the sign of a family to its members. */
function neighbours(id: string, along: 1 | -1, { edges, groups }: Drawing): string[] {
  const next = (from: string): string[] => [...edges.values()].flatMap((edge) => (along > 0 ? (edge.from === from ? [edge.to] : []) : edge.to === from ? [edge.from] : []));
  const seen = new Set<string>();
  const found: string[] = [];
  const look = (from: string): void => {
    for (const one of next(from)) {
      if (seen.has(one)) continue;
      seen.add(one);
      if (groups.has(one)) look(one);
      else found.push(one);
    }
  };
  look(id);
  return found;
}

/** How much farther it counts than it is; null: it is not on this side. */
function ahead(from: Spot, to: Spot, [x, y]: Side): number | null {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const forward = dx * x + dy * y;
  const aside = Math.abs(dx * y) + Math.abs(dy * x);
  return forward < 1 ? null : 1 + (ASIDE * aside) / (forward + aside);
}

function nearest(from: Spot, spots: readonly Spot[], factor: (spot: Spot) => number | null): string | null {
  let best: [string, number] | null = null;
  for (const spot of spots) {
    const times = spot.id === from.id ? null : factor(spot);
    if (times === null) continue;
    const far = Math.hypot(spot.x - from.x, spot.y - from.y) * times;
    if (best === null || far < best[1]) best = [spot.id, far];
  }
  return best?.[0] ?? null;
}
