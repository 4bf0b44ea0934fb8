import { createTable, getCoreRowModel, getSortedRowModel } from "@tanstack/react-table";
import { expect, test } from "vitest";
import type { TaskRow } from "../../api/types";
import { COLUMNS } from "./columns";

const row = (name: string, more: Partial<TaskRow> = {}): TaskRow => ({
  id: `1/${name}`, point: "1", name, state: "waiting", remarks: [], flows: [1], submit: 0, in_pool: true,
  queued_at: null, started_at: null, ended_at: null, exit_status: null, worker: null, ...more,
});

function order(data: TaskRow[], id: string, desc = false): string {
  const table = createTable<TaskRow>({
    data, columns: COLUMNS, getRowId: (one) => one.id, getCoreRowModel: getCoreRowModel(), getSortedRowModel: getSortedRowModel(),
    state: { sorting: [{ id, desc }] }, onStateChange: () => undefined, renderFallbackValue: null,
  });
  table.setOptions((old) => ({ ...old, state: { ...table.initialState, ...old.state } }));
  return table.getSortedRowModel().rows.map((one) => one.original.name).join(" ");
}

test("tasks of which a time, an exit or a worker is not known stand last, whichever way one sorts", () => {
  const all = [
    row("never"),
    row("late", { started_at: "2026-11-19T20:00:02Z", ended_at: "2026-11-19T20:00:03Z", exit_status: 0, worker: "w1" }),
    row("waits"),
    row("early", { started_at: "2026-11-19T20:00:01Z", ended_at: "2026-11-19T20:00:05Z", exit_status: 3, worker: "w2" }),
  ];
  expect(order(all, "started_at")).toBe("early late never waits");
  expect(order(all, "started_at", true)).toBe("late early never waits");
  expect(order(all, "took")).toBe("late early never waits");
  expect(order(all, "took", true)).toBe("early late never waits");
  expect(order(all, "exit", true)).toBe("early late never waits");
  expect(order(all, "exit")).toBe("late early never waits");
  expect(order(all, "worker", true)).toBe("early late never waits");
});

test("names are sorted with their numbers, and ten thousand of them at once", () => {
  expect(order([row("m10"), row("m9"), row("a")], "name")).toBe("a m9 m10");
  const many = Array.from({ length: 10_000 }, (_, place) => row(`part_i${(place * 7919) % 10_000}`));
  expect(order(many, "name").split(" ")[9_999]).toBe("part_i9999");
});
