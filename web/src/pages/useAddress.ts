/** What a page keeps behind the ? of its address. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";
import type { Search } from "./search";

export function useAddress(): [Search, (what: Search) => void] {
  const search: Record<string, string | undefined> = useSearch({ strict: false });
  const navigate = useNavigate();
  const change = useCallback(
    (what: Search) => {
      const next = (old: Record<string, string | undefined>): Search =>
        Object.fromEntries(Object.entries({ ...old, ...what }).filter((pair): pair is [string, string] => pair[1] !== undefined && pair[1] !== ""));
      void navigate({ to: ".", search: next, replace: true });
    },
    [navigate],
  );
  return [search as Search, change];
}
