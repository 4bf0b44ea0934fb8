/**
 * Which part of the graph is shown: around the live tasks, the last points where none is live, around what was looked for, or
 * around what a command would set going. Tasks far from every live one are found by name and by point (R001-51).
 */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useActing } from "../../acting/Acting";
import { useTried } from "../../acting/tried";
import { graphQuery } from "../../api/graph";
import { pastGraphQuery } from "../../api/past";
import { useLiveOf } from "../../api/runLive";
import type { TaskRow } from "../../api/types";
import { rowFilter, type Filters } from "../../pages/run/filters";
import { useRunPage, useViewOption } from "../../pages/run/useRunPage";
import { previewOf, type Preview } from "./preview";

const IDS_MAX = 100; // named in one question
const NO_ROWS: readonly TaskRow[] = [];
const LAST_MIN = 60; // tasks of a run that is over: as many points as have these

export function useGraph(edges: number) {
  const { run, filters, selected } = useRunPage();
  const looksFor = filters.name !== "" || filters.point !== "";
  const nodes = useLiveOf((live) => live.nodes);
  const past = useLiveOf((live) => live.past);
  const rows = useLiveOf((live) => (looksFor ? live.rows : NO_ROWS)); // they change all the time
  const last = useLiveOf((live) => lastPoints(live.rows));
  const [around, setAround] = useViewOption("graph", "around", "");
  const { action, docked } = useActing();
  const { data: tried } = useTried(run, docked ? action : null);
  const preview = useMemo<Preview | null>(() => (docked && action !== null && past === null ? previewOf(action, tried) : null), [docked, action, tried, past]);
  const found = useMemo(
    () => rows.filter(rowFilter({ ...filters, states: [] }, (name) => nodes[name]?.families ?? [])).map((row) => row.id),
    [filters, rows, nodes],
  );
  const middle = useMemo(() => middleOf(around, filters, found, selected, last), [around, filters, found, selected, last]);
  const window = useQuery(past === null ? graphQuery(run, edges, middle) : pastGraphQuery(run, past.batch, edges, middle));
  const known = useMemo(() => new Set(window.data?.tasks.map((task) => task.id)), [window.data]);
  // A dry run that reaches beyond the window is drawn around itself.
  const beyond = useMemo(() => {
    const ids = preview === null ? [] : [...preview.marks.keys()];
    return ids.some((id) => !known.has(id)) ? ids.slice(0, IDS_MAX) : [];
  }, [preview, known]);
  const drawn = useQuery({ ...graphQuery(run, 1, beyond), enabled: beyond.length > 0 });
  const graph = beyond.length > 0 ? (drawn.data ?? window.data) : window.data;
  const outside = useMemo(() => found.filter((id) => !known.has(id)), [found, known]);
  const lostSelection = selected !== null && window.data !== undefined && !known.has(selected) && preview === null;
  return { graph, error: window.error, refetch: window.refetch, preview, around, setAround, outside, lostSelection, over: last !== "" };
}

/** What is in the middle of the window; nothing: the live tasks. `last`: the points to show where none is live. */
export function middleOf(around: string, filters: Pick<Filters, "name" | "point">, found: readonly string[], selected: string | null, last: string): string[] {
  if (around === "task" && selected !== null) return [selected];
  if (around !== "found") return last === "" ? [] : last.split(",");
  if (found.length > 0) return found.slice(0, IDS_MAX);
  // Not spawned yet: the server knows the names of the definition.
  if (filters.name.includes("/")) return [filters.name];
  return filters.name === "" ? [] : [filters.point === "" ? filters.name : `${filters.point}/${filters.name}`];
}

/** Where no task is live, the last points as a run of globs; else nothing. */
export function lastPoints(rows: readonly Pick<TaskRow, "point" | "in_pool">[]): string {
  if (rows.some((row) => row.in_pool)) return "";
  const points: string[] = [];
  for (let place = rows.length - 1; place >= 0; place -= 1) {
    const point = rows[place]?.point ?? "";
    if (point === points.at(-1)) continue;
    if (rows.length - 1 - place >= LAST_MIN) break;
    points.push(point);
  }
  return points.map((point) => `${point}/*`).join(",");
}
