/** Cycle points as short as their surroundings allow; the whole point belongs into a title or label beside it. */

const DATED = /^([+-]?\d{4,})(\d\d)(\d\d)T(\d\d)(\d\d)?(\d\d)?(Z|[+-]\d\d:?(?:\d\d)?)?$/;

interface Dated {
  day: string; // 20261116
  year: string;
  date: string; // 11-16
  time: string; // 02Z, 0230Z
}

/** null: a number, or written otherwise. */
function read(point: string): Dated | null {
  const found = DATED.exec(point);
  if (found === null) return null;
  const [, year = "", month = "", day = "", hour = "", minute = "", second = "", zone = ""] = found;
  const seconds = /^0*$/.test(second) ? "" : second;
  const minutes = seconds === "" && /^0*$/.test(minute) ? "" : minute;
  return { day: `${year}${month}${day}`, year, date: `${month}-${day}`, time: `${hour}${minutes}${seconds}${zone}` };
}

/** Whether it is long enough to be shortened. */
export const isDated = (point: string): boolean => DATED.test(point);

/** "02Z" among points of the same day, "11-16 02Z" in the same year, else "2026-11-16 02Z"; `among` is a point, or "" where nothing around says the day. */
export function shortPoint(point: string, among = ""): string {
  const one = read(point);
  if (one === null) return point;
  const other = read(among);
  if (other?.day === one.day) return one.time;
  if (other?.year === one.year) return `${one.date} ${one.time}`;
  return `${one.year}-${one.date} ${one.time}`;
}

/** What a list of points leaves to be said of each: `among` for shortPoint. The day if they share it, else the year, else nothing. */
export function sharedPoint(points: Iterable<string>): string {
  let first: string | null = null;
  let [sameDay, sameYear] = [true, true];
  for (const point of points) {
    first ??= point;
    const [a, b] = [read(first), read(point)];
    sameDay &&= a !== null && a.day === b?.day;
    sameYear &&= a !== null && a.year === b?.year;
  }
  if (first === null || !sameYear) return "";
  // A point of that year at no day of it.
  return sameDay ? first : `${read(first)?.year ?? ""}0000T00`;
}

/** "member_07 · 02Z" of "20261116T0200Z/member_07". */
export function shortTask(id: string, among = ""): string {
  const slash = id.indexOf("/");
  if (slash < 0) return id;
  return `${id.slice(slash + 1)} · ${shortPoint(id.slice(0, slash), among)}`;
}
