/** What the palette finds: what the page knows, and what the server has by that name; and what of the text is a command. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { foundRunsQuery, foundTasksQuery, runRowsQuery } from "../api/finding";
import { runsQuery } from "../api/queries";
import { workflowsQuery } from "../api/registry";
import { currentLive } from "../api/runLive";
import { shownId, taskWord } from "../api/shown";
import { queuesQuery } from "../api/storeQueries";
import type { RunFacts } from "../api/types";
import { RUN_STATUSES } from "../ui/palette";
import { plain } from "../ui/plain";
import { useSettled } from "../ui/settled";
import { toggleTheme } from "../ui/theme";
import { readCommand } from "./commands";
import { matching, type Found } from "./found";
import { usePlaces } from "./places";
import { useCommands } from "./useCommands";

const SETTLED_MS = 150; // whoever types on is not asked about each letter
const NAME_MIN = 2; // letters, before a server is asked

export interface Palette {
  found: Found[];
  isLoading: boolean;
  /** Why something is not among them; empty: nothing is to be said. */
  says: string;
}

export function useFound(text: string): Palette {
  const settled = useSettled(text.trim(), SETTLED_MS);
  const { runs, isLoading: runsAreLoading } = useRuns(settled);
  const commands = useCommands(text, runs);
  const typed = readCommand(text);
  const known = useKnown(runs);
  const tasks = useTasksOf(text, runs);
  const queued = useQueued(settled);
  // A verb that is written out comes first; one that has only begun, behind what is called so.
  const searched = matching([...known.found, ...queued.found], text);
  const isTyping = settled !== text.trim();
  const found = typed === null ? [...tasks.found, ...searched, ...commands.found] : [...commands.found, ...searched];
  const isLoading = runsAreLoading || known.isLoading || commands.isLoading || tasks.isLoading || queued.isLoading || isTyping;
  const says = typed !== null && commands.found.length === 0 ? commands.says : ""; // why the command is none, above what is called so
  return { found, isLoading, says: says !== "" || found.length > 0 ? says : "Nothing with this name was found." };
}

/** What was typed as the name of a run: all of it, or what stands behind "in" or before "//". */
export function runWords(text: string): { name: string; status: string } {
  const typed = readCommand(`${text} `);
  if (typed !== null) return { name: typed.run ?? "", status: "" };
  const path = text.indexOf("//");
  if (path >= 0) return { name: text.slice(0, path), status: "" };
  const within = /\sin\s+(\S+)$/.exec(text);
  if (within !== null) return { name: within[1] ?? "", status: "" };
  const status = RUN_STATUSES.find((one) => one === text.toLowerCase());
  return status === undefined ? { name: text, status: "" } : { name: "", status };
}

/** The newest of all, and those that the server has by that name or status. */
function useRuns(text: string): { runs: readonly RunFacts[]; isLoading: boolean } {
  const { data: newest, isLoading } = useQuery(runsQuery);
  const { name, status } = runWords(text);
  const asks = newest !== undefined && (status !== "" || name.length >= NAME_MIN);
  const { data: found = [], isLoading: isAsking } = useQuery({ ...foundRunsQuery(name, status), enabled: asks });
  const runs = new Map([...(newest ?? []), ...found].map((run) => [run.name, run]));
  return { runs: [...runs.values()], isLoading: isLoading || (asks && isAsking) };
}

function useKnown(runs: readonly RunFacts[]): { found: Found[]; isLoading: boolean } {
  const navigate = useNavigate();
  const places = usePlaces();
  const { data: workflows = [], isLoading } = useQuery(workflowsQuery);
  const { data: queues = [] } = useQuery(queuesQuery);
  const rows = currentLive()?.snapshot().rows ?? [];
  const select = (id: string) => void navigate({ to: ".", search: (old) => ({ ...old, select: id }) });
  const found = [
    ...rows.map((row): Found => ({
      key: `task ${row.id}`, title: shownId(row.id), kind: taskWord(), state: [row.state, "tasks"], also: row.state, go: () => select(row.id),
    })),
    ...places.map((place): Found => ({
      key: place.to, title: place.title, kind: "page", go: () => void navigate({ to: place.to }),
    })),
    ...runs.map((one): Found => ({
      key: `run ${one.name}`, title: one.name, kind: `run, ${one.status}`, state: [one.status, "runs"], also: one.status,
      go: () => void navigate({ to: "/runs/$run", params: { run: one.name } }),
    })),
    ...[...new Set(workflows.map((one) => one.name))].map((name): Found => ({
      key: `workflow ${name}`, title: name, kind: "workflow", go: () => void navigate({ to: "/workflows/$workflow", params: { workflow: name } }),
    })),
    // That of a run is called like it: the run is what is meant.
    ...queues.filter(({ queue }) => !queue.startsWith("run:")).map(({ queue }): Found => ({ key: `queue ${queue}`, title: plain(queue), kind: "queue", go: () => void navigate({ to: "/tasks", search: { queue } }) })),
    { key: "documentation", title: "Documentation", kind: "page", go: () => window.location.assign("/docs/") },
    { key: "theme", title: "Dark or light", kind: "setting", go: toggleTheme },
  ];
  return { found, isLoading };
}

/** "wide/run1//1/join" and "join in wide": tasks of a run that is not open. */
function useTasksOf(text: string, runs: readonly RunFacts[]): { found: Found[]; isLoading: boolean } {
  const navigate = useNavigate();
  const path = text.trim().split("//");
  const within = /^(.*?)\sin\s+(\S+)\s*$/.exec(text);
  const [name = "", task = ""] = path.length === 2 ? path : within !== null && readCommand(text) === null ? [within[2], within[1]] : [];
  const wanted = name.trim().toLowerCase();
  const run = wanted === "" ? undefined : (runs.find((one) => one.name.toLowerCase() === wanted) ?? runs.find((one) => one.name.toLowerCase().includes(wanted)));
  const { data, isLoading } = useQuery({ ...runRowsQuery(run?.name ?? ""), enabled: run !== undefined });
  if (run === undefined || data === undefined) return { found: [], isLoading: run !== undefined && isLoading };
  const rows = data.tasks.map((row): Found => ({
    key: `task of ${run.name} ${row.id}`, title: row.id, kind: `task of ${run.name}`, state: [row.state, "tasks"], also: row.state,
    go: () => void navigate({ to: "/runs/$run", params: { run: run.name }, search: { select: row.id } }),
  }));
  return { found: matching(rows, task), isLoading: false };
}

/** Tasks of queues are found by the whole of what they are called. */
function useQueued(text: string): { found: Found[]; isLoading: boolean } {
  const navigate = useNavigate();
  const asks = text.length >= NAME_MIN && !/\s|\/\//.test(text);
  const { data = [], isLoading } = useQuery({ ...foundTasksQuery(text), enabled: asks });
  const found = (asks ? data : []).map((one): Found => ({
    key: `queued ${one.id}`, title: plain(one.name ?? one.id), kind: `task in queue ${plain(one.queue)}, ${one.status}`, state: [one.status, "statuses"], also: text.toLowerCase(),
    go: () => void navigate({ to: "/tasks", search: { task: one.id } }),
  }));
  return { found, isLoading: asks && isLoading };
}
