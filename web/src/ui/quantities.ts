/** Amounts as people read them. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytesText(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** power;
  return `${value >= 100 || power === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[power]}`;
}

export const percentText = (part: number): string => `${part >= 10 ? Math.round(part) : part.toFixed(1)} %`;
