/** Which tasks of a run are meant: the same filters for every view, kept in the address. */
import type { TaskRow } from "../../api/types";
import { globMatcher, readFilter } from "../../ui/globs";
import { TASK_STATES } from "../../ui/palette";

export const REMARKS = ["incomplete", "blocked", "held", "retrying", "xtrigger"];

export interface Filters {
  states: string[]; // states or remarks; none: all
  name: string; // a filter: of names and families, with a slash of POINT/NAME
  point: string; // glob
  flow: string; // a number
}

export function readFilters(search: Record<string, string>): Filters {
  return {
    states: (search.state ?? "").split(",").filter(Boolean),
    name: search.name ?? "",
    point: search.point ?? "",
    flow: search.flow ?? "",
  };
}

export const isFiltering = (filters: Filters): boolean =>
  filters.states.length > 0 || filters.name !== "" || filters.point !== "" || filters.flow !== "";

/** A function that says of each row whether it is meant. */
export function rowFilter(
  filters: Filters,
  familiesOf: (name: string) => readonly string[] = () => [],
): (row: Pick<TaskRow, "state" | "remarks" | "name" | "point" | "flows">) => boolean {
  const sought = nameFilter(filters.name);
  const isOfIds = filters.name.includes("/");
  const point = globMatcher(filters.point);
  const flow = Number(filters.flow);
  return (row) =>
    (filters.states.length === 0 || filters.states.some((one) => row.state === one || row.remarks.includes(one))) &&
    (filters.name === "" || sought.fits(namesOf(row, familiesOf(row.name), isOfIds), [row.state, ...row.remarks])) &&
    point(row.point) &&
    (filters.flow === "" || row.flows.includes(flow));
}

export const nameFilter = (text: string) => readFilter(text, [...TASK_STATES, ...REMARKS, "runahead", "withdrawn"]);

function namesOf(row: Pick<TaskRow, "name" | "point">, families: readonly string[], isOfIds: boolean): string[] {
  const names = [row.name, ...families.filter((one) => one !== "root")];
  return isOfIds ? names.map((one) => `${row.point}/${one}`) : names;
}
