/** What a browser's tab is called: what is seen there, and how much of it needs action. */
import { useEffect } from "react";
import { lookOf } from "./palette";
import { plain } from "./plain";

const PROGRAM = "tidewheel";

/** The tab is called so while the page is shown. */
export function useTitle(text: string): void {
  useEffect(() => {
    document.title = text === "" ? PROGRAM : `${plain(text)} · ${PROGRAM}`;
    return () => {
      document.title = PROGRAM;
    };
  }, [text]);
}

/** A run by its shape, name and status: "✖ wide/run1 stalled". */
export const runTitle = (name: string, status: string): string => (status === "" ? name : `${lookOf(status, "runs").shape} ${name} ${status}`);

/** What may no longer be so: "? wide/run1". */
export const doubtfulTitle = (title: string): string => `? ${title}`;

/** A page with a number of things that need action: "(2) Runs". */
export const countedTitle = (title: string, count: number): string => (count > 0 ? `(${count}) ${title}` : title);
