/** The head of a column that sorts: a button with an arrow, in a cell that says the same to a screen reader. */
import { useEffect, useRef, type ReactNode } from "react";

export type Direction = "asc" | "desc" | false;

/** What `aria-sort` of a column says. */
export const ariaSort = (sorted: Direction) => (sorted === "asc" ? "ascending" : sorted === "desc" ? "descending" : "none");

interface Props {
  sorted: Direction;
  sort: (event: unknown) => void;
  inGrid?: boolean; // arrows move between the heads, which are one Tab stop
  children: ReactNode;
}

export function SortHead({ sorted, sort, inGrid = false, children }: Props) {
  return (
    <button type="button" className="sort-head" title="Sort by this column; again: the other way round" onClick={sort} {...(inGrid ? { "data-stop": true, tabIndex: -1 } : {})}>
      {children}
      <i aria-hidden>{sorted === "asc" ? "↑" : sorted === "desc" ? "↓" : "↕"}</i>
    </button>
  );
}

/** The next order after a press on a column: as it `begins`, then reversed, then as it was before; "-name" is descending. */
export function nextSort(sort: string, column: string, begins: "asc" | "desc"): string {
  const [first, second] = begins === "asc" ? [column, `-${column}`] : [`-${column}`, column];
  return sort === first ? second : sort === second ? "" : first;
}

export const directionOf = (sort: string, column: string): Direction => (sort === column ? "asc" : sort === `-${column}` ? "desc" : false);

/** Shows the first rows after the order was changed: what was asked for is there. Not when the page opens, which may be at a place of its own. */
export function useTopAfter(sort: string, list: { scrollToOffset: (offset: number) => void }): void {
  const last = useRef(sort);
  useEffect(() => {
    if (last.current !== sort) list.scrollToOffset(0);
    last.current = sort;
  }, [sort, list]);
}
