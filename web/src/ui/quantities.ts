/** Amounts as people read them. */
import { durationText } from "./time";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytesText(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** power;
  return `${value >= 100 || power === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[power]}`;
}

/** "1 task", "2 tasks". */
export const countText = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

/** Of a run of which a part is shown. */
export const leftOutText = (points: number): string => `${countText(points, "older point")} ${points === 1 ? "is" : "are"} left out`;

export const percentText = (part: number): string => `${part === 0 || part >= 10 ? Math.round(part) : part.toFixed(1)} %`;

/** How many of all: 100 % only if it is all of them. */
export const rateText = (rate: number): string => (rate < 1 && rate > 0.99 ? `${(Math.floor(1000 * rate) / 10).toFixed(1)} %` : percentText(100 * rate));

/** How values are written: alone, and as the labels of an axis, which share a unit and tell one from the next. */
export interface Scale {
  text: (value: number) => string;
  /** From the largest on; none: labels are texts. */
  units: readonly (readonly [number, string])[];
  /** From this value on, labels are texts. */
  until?: number;
  /** How far labels may lie apart; left out: as ten fingers count. */
  steps?: number[];
}

export const BYTES: Scale = { text: bytesText, steps: Array.from({ length: 54 }, (_, power) => 2 ** power), units: UNITS.map((unit, power) => [1024 ** power, unit] as const).reverse() };
export const PERCENT: Scale = { text: percentText, units: [[1, "%"]] };
export const SECONDS: Scale = { text: durationText, units: [[1, "s"], [1e-3, "ms"]], until: 60 };
export const COUNT: Scale = { text: (value) => (Number.isInteger(value) ? String(value) : ""), units: [] };

/** As many decimals as the distance between two labels needs, and no more than tell them apart. */
export function axisLabels(splits: readonly number[], { text, units, until = Infinity }: Scale): string[] {
  const most = Math.max(...splits.map(Math.abs));
  const steps = splits.slice(1).map((one, place) => Math.abs(one - (splits[place] ?? 0))).filter((step) => step > 0);
  if (units.length === 0 || most >= until || steps.length === 0) return splits.map(text);
  const [size, unit] = units.find(([one]) => most >= one) ?? units[units.length - 1] ?? [1, ""];
  const step = Math.min(...steps) / size;
  const enough = Math.max(0, Math.ceil(-Math.log10(step))) + 1;
  let decimals = 0;
  while (decimals < enough && Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) > 1e-6) decimals += 1;
  return splits.map((one) => `${(one / size).toFixed(decimals)} ${unit}`);
}
