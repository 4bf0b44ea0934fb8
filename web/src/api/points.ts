/** The order of cycle points. */

/** Points are numbers, or dates written so that texts compare. */
export function comparePoints(a: string, b: string): number {
  const numbers = [Number(a), Number(b)] as const;
  if (Number.isInteger(numbers[0]) && Number.isInteger(numbers[1]) && a.length < 8 && b.length < 8) return numbers[0] - numbers[1];
  return a < b ? -1 : a > b ? 1 : 0;
}
