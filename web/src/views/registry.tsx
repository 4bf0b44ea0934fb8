/** Every view of a run. To add one: a folder beside this file, and a line here. */
import { lazy, type ComponentType, type LazyExoticComponent } from "react";
import { part } from "../upgrade";

export interface ViewDefinition {
  id: string; // in the address
  title: string;
  keys: string; // the shortcut that shows or hides it
  says: string;
  /** Takes nothing: useRunPage, useLive, useViewOption and useTicks tell all it needs. */
  View: LazyExoticComponent<ComponentType>;
}

export const VIEWS: readonly ViewDefinition[] = [
  {
    id: "graph",
    title: "Graph",
    keys: "v g",
    says: "Tasks that wait, run or need action, the tasks around them, and what they wait for",
    View: lazy(part(() => import("./graph/GraphView").then((module) => ({ default: module.GraphView })))),
  },
  {
    id: "tree",
    title: "Tree",
    keys: "v e",
    says: "Points, families, tasks and their attempts, with counts",
    View: lazy(part(() => import("./tree/TreeView").then((module) => ({ default: module.TreeView })))),
  },
  {
    id: "grid",
    title: "Grid",
    keys: "v c",
    says: "Tasks by cycle points: a square for each task, families folded with counts",
    View: lazy(part(() => import("./grid/GridView").then((module) => ({ default: module.GridView })))),
  },
  {
    id: "table",
    title: "Table",
    keys: "v t",
    says: "Every task as a row: sort, filter, act on several tasks",
    View: lazy(part(() => import("./table/TableView").then((module) => ({ default: module.TableView })))),
  },
  {
    id: "timeline",
    title: "Timeline",
    keys: "v i",
    says: "When jobs waited and ran, and what made the run take so long",
    View: lazy(part(() => import("./timeline/TimelineView").then((module) => ({ default: module.TimelineView })))),
  },
  {
    id: "analysis",
    title: "Analysis",
    keys: "v a",
    says: "How long tasks wait and run, and how much of the requested resources they use",
    View: lazy(part(() => import("./analysis/AnalysisView").then((module) => ({ default: module.AnalysisView })))),
  },
  {
    id: "logs",
    title: "Logs",
    keys: "v l",
    says: "What jobs and the scheduler wrote: follow, search, wrap lines",
    View: lazy(part(() => import("./logs/LogsView").then((module) => ({ default: module.LogsView })))),
  },
  {
    id: "history",
    title: "History",
    keys: "v h",
    says: "The run at an earlier time: a slider moves through everything that changed it",
    View: lazy(part(() => import("./history/HistoryView").then((module) => ({ default: module.HistoryView })))),
  },
];
