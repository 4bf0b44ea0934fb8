import { expect, test } from "vitest";
import type { RunAttempt } from "../../api/types";
import { bytesText } from "../../ui/quantities";
import { byName, figuresOf, histogram, overPoints, QUANTITIES } from "./analysis";

const [RUN, QUEUE, MEMORY] = QUANTITIES as [(typeof QUANTITIES)[0], (typeof QUANTITIES)[0], (typeof QUANTITIES)[0]];
const at = (seconds: number) => new Date(1_800_000_000_000 + seconds * 1_000).toISOString();
const attempt = (id: string, ran: number, more: Partial<RunAttempt> = {}): RunAttempt => {
  const [point = "", name = ""] = id.split("/");
  return {
    id, point, name, submit: 1, attempt: 1, task: id, worker: "w", queued_at: at(0), claimed_at: at(2), started_at: at(3), ended_at: at(3 + ran), ended_by: "succeed", exit_status: 0,
    asked: { cpu: 0, memory_bytes: 0, gpu: 0 }, used: { memory_bytes: null, cpu_percent: null, gpu_percent: null, gpu_memory_bytes: null }, ...more,
  };
};

test("run times are those of attempts that succeeded, failures are counted", () => {
  const [model, prep] = byName([attempt("1/prep", 1), attempt("1/model", 10), attempt("2/model", 20), attempt("3/model", 900, { ended_by: "fail" })], RUN);
  expect([model?.name, model?.figures.count, model?.figures.max, model?.failed]).toEqual(["model", 2, 20, 1]);
  expect([prep?.name, prep?.figures.p50]).toEqual(["prep", 1]);
});

test("a task that failed each time is in the list, without figures of its own", () => {
  const failing = ["1", "2", "3"].map((point) => attempt(`${point}/waves`, 5, { ended_by: "fail" }));
  const [prep, waves] = byName([...failing, attempt("1/prep", 1)], RUN);
  expect([prep?.name, waves?.name, waves?.failed, waves?.figures.count]).toEqual(["prep", "waves", 3, 0]);
  expect([waves?.ended, waves?.failedAfter.p50, prep?.ended, prep?.failedAfter.count]).toEqual([3, 5, 1, 0]);
});

test("queue times end when the job began, and of one that waits nothing is known", () => {
  const waiting = attempt("2/a", 0, { claimed_at: null, started_at: null, ended_at: null, ended_by: null });
  expect(byName([attempt("1/a", 1), waiting], QUEUE)[0]?.values).toEqual([{ point: "1", value: 3 }]);
});

test("what was used stands beside what was asked for", () => {
  const used = { memory_bytes: 50, cpu_percent: null, gpu_percent: null, gpu_memory_bytes: null };
  const [one] = byName([attempt("1/a", 1, { used, asked: { cpu: 1, memory_bytes: 100, gpu: 0 } })], MEMORY);
  expect([one?.figures.max, one?.asked]).toEqual([50, 100]);
  expect(byName([attempt("1/a", 1)], MEMORY)).toEqual([]);
});

test("points are in order, each with its middle and largest value", () => {
  const values = [{ point: "10", value: 5 }, { point: "9", value: 1 }, { point: "10", value: 7 }];
  expect(overPoints(values)).toEqual({ points: ["9", "10"], middle: [1, 7], largest: [1, 7] });
});

test("a histogram holds every value, also when all are the same", () => {
  const values = [1, 2, 2, 3, 10];
  expect(histogram(values).counts.reduce((a, b) => a + b)).toBe(5);
  expect(histogram([4, 4, 4]).counts).toEqual([3]);
});

test("figures are values that were seen; bytes have binary units", () => {
  expect(figuresOf([3, 1, 2])).toMatchObject({ min: 1, p50: 2, max: 3, total: 6 });
  expect([bytesText(0), bytesText(1536), bytesText(40 * 1024 ** 2)]).toEqual(["0 B", "1.5 KiB", "40.0 MiB"]);
});
