/** Which part of the width each view has, where several stand side by side. */

export type Shares = Readonly<Record<string, number>>;

const STORED = "tidewheel.widths";
const MIN = 0.15; // nobody loses a view by dragging

/** Parts that make up one; a view of which nothing was said has as much as the others. */
export function sharesOf(ids: readonly string[], said: Shares): number[] {
  const wanted = ids.map((id) => said[id] ?? 1);
  const sum = wanted.reduce((all, one) => all + one, 0);
  return wanted.map((one) => one / (sum || 1));
}

/** What the line behind the view at this place leaves to the two beside it, moved by a part of the width. */
export function moved(ids: readonly string[], shares: readonly number[], place: number, by: number): Shares {
  const next = [...shares];
  const [left = 0, right = 0] = [shares[place], shares[place + 1]];
  const least = Math.min(MIN, left, right);
  const step = Math.min(right - least, Math.max(least - left, by));
  next[place] = left + step;
  next[place + 1] = right - step;
  return Object.fromEntries(ids.map((id, at) => [id, (next[at] ?? 0) * ids.length]));
}

export function storedShares(): Shares {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(STORED) ?? "{}");
    if (typeof found !== "object" || found === null) return {};
    return Object.fromEntries(Object.entries(found).filter(([, value]) => typeof value === "number" && value > 0 && value < 100));
  } catch {
    return {};
  }
}

export function storeShares(shares: Shares): void {
  localStorage.setItem(STORED, JSON.stringify(shares));
}
