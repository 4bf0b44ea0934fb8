/** A search in one log, begun anew when something else is searched for, and taken on when the log grows. */
import { useEffect, useState, useSyncExternalStore } from "react";
import type { LogHit } from "../../api/generated/log_lines";
import { NOTHING_YET, StepSearch, wantedQuery, type SearchState, type Wanted } from "./search";

const TYPING_MS = 250; // nobody types slower within a word

const silent = () => () => undefined;
const none = () => null;

/** `path` is where the log is searched, with what names it. Null while nothing is searched for. */
export function useLogSearch(path: string, wanted: Wanted | null, size: number): SearchState<LogHit> | null {
  const [begun, setBegun] = useState<{ key: string; search: StepSearch } | null>(null);
  const key = wanted === null ? "" : JSON.stringify([path, wanted]);
  useEffect(() => {
    if (key === "") return;
    const [where, what] = JSON.parse(key) as [string, Wanted];
    const made = new StepSearch((cursor) => `${where}&${new URLSearchParams({ ...wantedQuery(what), ...cursor }).toString()}`);
    const timer = window.setTimeout(() => { setBegun({ key, search: made }); made.start(); }, TYPING_MS);
    return () => {
      window.clearTimeout(timer);
      made.stop();
    };
  }, [key]);
  const search = begun?.key === key ? begun.search : null; // that for an earlier text has found other lines
  useEffect(() => search?.grew(size), [search, size]);
  const state = useSyncExternalStore<SearchState<LogHit> | null>(search?.subscribe ?? silent, search?.snapshot ?? none);
  return key === "" ? null : (state ?? NOTHING_YET);
}
