/** The columns of the table of tasks, and how each sorts. */
import { createColumnHelper } from "@tanstack/react-table";
import { comparePoints } from "../../api/points";
import { isOfStages, pointsAround, shownId } from "../../api/shown";
import { UNWELL } from "../../acting/verbs";
import type { TaskRow } from "../../api/types";
import { FlowMarks } from "../../ui/FlowMark";
import { TASK_STATES } from "../../ui/palette";
import { shortPoint } from "../../ui/points";
import { StateWord } from "../../ui/StateIcon";
import { At, secondsBetween, Took } from "../../ui/time";

const column = createColumnHelper<TaskRow>();
const stateRank = new Map(TASK_STATES.map((state, place) => [state, place]));

const momentOf = (at: string | null): number | undefined => (at === null ? undefined : Date.parse(at)); // compared faster than texts

/** A text that is compared instead of a name: m9 is before m10. With a collator, ten thousand rows take six times as long. */
const inOrderOfNumbers = (name: string): string => name.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(12, "0"));

/** Tasks of which a figure is not known stand behind all others, whichever way one sorts. */
const KNOWN_FIRST = { sortUndefined: "last", sortingFn: "basic" } as const;

export function ranSeconds(row: TaskRow, now: number): number | undefined {
  if (row.started_at === null) return undefined;
  return secondsBetween(row.started_at, row.ended_at ?? now);
}

export const COLUMNS = [
  column.accessor("point", {
    header: "Point",
    size: 100,
    minSize: 100, // month, day and hour: without it nobody knows which task is meant
    cell: (cell) => <span title={cell.getValue()}>{shortPoint(cell.getValue(), pointsAround())}</span>,
    sortingFn: (a, b) => comparePoints(a.original.point, b.original.point),
  }),
  column.accessor((row) => inOrderOfNumbers(row.name), { id: "name", sortingFn: "basic", header: () => (isOfStages() ? "Stage" : "Task"), size: 220, cell: ({ row }) => <span className={UNWELL.includes(row.original.state) ? "task-name unwell" : "task-name"}>{isOfStages() ? shownId(row.original.id) : row.original.name}</span> }),
  column.accessor("state", {
    header: "State",
    size: 210,
    cell: ({ row }) => <StateWord state={row.original.state} remarks={row.original.remarks} />,
    sortingFn: (a, b) => (stateRank.get(a.original.state) ?? 99) - (stateRank.get(b.original.state) ?? 99),
  }),
  column.accessor((row) => row.flows.join(", "), { id: "flows", header: "Flows", size: 80, cell: ({ row }) => (row.original.flows.some((flow) => flow > 1) ? <FlowMarks flows={row.original.flows} /> : row.original.flows.join(", ")) }),
  column.accessor("submit", { header: "Submit", size: 80, cell: (cell) => cell.getValue() || "" }),
  column.accessor((row) => momentOf(row.queued_at), { id: "queued_at", header: "Queued", size: 100, cell: ({ row }) => <At at={row.original.queued_at} />, ...KNOWN_FIRST }),
  column.accessor((row) => momentOf(row.started_at), { id: "started_at", header: "Began", size: 100, cell: ({ row }) => <At at={row.original.started_at} />, ...KNOWN_FIRST }),
  column.accessor((row) => ranSeconds(row, Date.now()), {
    id: "took",
    header: "Ran for",
    size: 110,
    ...KNOWN_FIRST,
    cell: ({ row }) => <Took from={row.original.started_at} to={row.original.ended_at} />,
  }),
  column.accessor((row) => row.worker ?? undefined, { id: "worker", header: "Worker", size: 110, ...KNOWN_FIRST }),
  column.accessor((row) => row.exit_status ?? undefined, { id: "exit", header: "Exit", size: 60, ...KNOWN_FIRST }),
];
