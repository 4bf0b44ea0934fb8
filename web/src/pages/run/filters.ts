/** Which tasks of a run are meant: the same filters for every view, kept in the address. */
import type { TaskRow } from "../../api/types";
import { globMatcher } from "../../ui/globs";

export interface Filters {
  states: string[]; // states or remarks; none: all
  name: string; // glob over names and families
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
  const name = globMatcher(filters.name);
  const point = globMatcher(filters.point);
  const flow = Number(filters.flow);
  return (row) =>
    (filters.states.length === 0 || filters.states.some((one) => row.state === one || row.remarks.includes(one))) &&
    (filters.name === "" || name(row.name) || familiesOf(row.name).some(name)) &&
    point(row.point) &&
    (filters.flow === "" || row.flows.includes(flow));
}
