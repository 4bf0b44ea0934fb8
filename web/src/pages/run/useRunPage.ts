/**
 * What every view of a run shares, and where it is kept: the address.
 *
 * `views` which are shown, side by side; `select` the task in the panel; filters; and for each
 * view its own options as `VIEW.OPTION`, and for the panel `panel.fold`. Ticked tasks are for one bulk action and live in memory.
 */
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import type { Search } from "../search";
import { readFilters, type Filters } from "./filters";

const VIEWS_DEFAULT = "graph";
const REMEMBERED = "tidewheel.views";
const NARROW = "(max-width: 900px)"; // views stand below each other, as run.css has it

export interface RunPageState {
  run: string;
  views: string[];
  selected: string | null;
  filters: Filters;
  select: (id: string | null) => void;
  setFilter: (key: "state" | "name" | "point" | "flow", value: string) => void;
  clearFilters: () => void;
  /** This view alone. */
  showView: (view: string) => void;
  /** One more beside those that are shown, or one less. */
  toggleView: (view: string) => void;
}

function rememberedViews(): string {
  return localStorage.getItem(REMEMBERED) ?? VIEWS_DEFAULT;
}

export function useRunPage(): RunPageState {
  const { run } = useParams({ from: "/runs/$run" });
  const search: Search = useSearch({ from: "/runs/$run" });
  const change = useChange();
  return useMemo(() => {
    const views = (search.views ?? rememberedViews()).split(",").filter(Boolean);
    const show = (next: readonly string[]) => {
      localStorage.setItem(REMEMBERED, next.join(","));
      change({ views: next.join(",") });
    };
    return {
      run,
      views,
      selected: search.select ?? null,
      filters: readFilters(search),
      select: (id) => change({ select: id ?? "", "panel.fold": "" }),
      setFilter: (key, value) => change({ [key]: value }, true),
      clearFilters: () => change({ state: "", name: "", point: "", flow: "" }),
      showView: (view) => show([view]),
      toggleView: (view) => {
        const next = views.includes(view) ? views.filter((one) => one !== view) : [...views, view];
        show(next.length > 0 ? next : views);
      },
    };
  }, [run, search, change]);
}

/** An option of a view, as `graph.n`; the address is replaced, not added to the history. */
export function useViewOption(view: string, option: string, usual: string): [string, (value: string) => void] {
  const search: Search = useSearch({ from: "/runs/$run" });
  const change = useChange();
  const key = `${view}.${option}`;
  const set = useCallback((value: string) => change({ [key]: value === usual ? "" : value }, true), [change, key, usual]);
  return [search[key] ?? usual, set];
}

/** Shows what a submission of a task wrote, beside the views that are open or, where there is no room, instead of them; `attempt` "" is the latest, whichever that is. */
export function useShowLog(): (id: string, file: string, attempt: string, lines?: string) => void {
  const { views } = useRunPage();
  const change = useChange();
  return useCallback(
    (id, file, attempt, lines = "") => change({ select: id, views: (window.matchMedia(NARROW).matches ? ["logs"] : views.includes("logs") ? views : [...views, "logs"]).join(","), "panel.fold": "yes", "logs.of": "", "logs.file": file === "out" ? "" : file, "logs.attempt": attempt === "" ? "" : `${id}:${attempt}`, "logs.lines": lines }),
    [views, change],
  );
}

/** Shows tasks of a name, a glob or a family in one state as a table, instead of what is shown. */
export function useShowTasks(): (name: string, state: string) => void {
  const change = useChange();
  return useCallback((name, state) => change({ views: "table", name, state, point: "", flow: "" }), [change]);
}

/** Changes several parts of the address at once. */
export function useChange(): (what: Search, replace?: boolean) => void {
  const navigate = useNavigate({ from: "/runs/$run" });
  return useCallback(
    (what, replace = false) => {
      const search = (old: Search): Search =>
        Object.fromEntries(Object.entries({ ...old, ...what }).filter(([, value]) => value !== ""));
      void navigate({ to: ".", search, replace });
    },
    [navigate],
  );
}
