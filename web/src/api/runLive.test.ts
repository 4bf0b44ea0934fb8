// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RunLive } from "./live";
import { followBatches } from "./runLive";
import type { TaskRows } from "./types";

const rows = (batch: number): TaskRows => ({
  run: { name: "r", status: "running" } as TaskRows["run"], batch, cursor: "0", points: [], points_left_out: 0, nodes: {}, tasks: [],
});

beforeEach(() => { vi.useFakeTimers(); });
afterEach(() => { vi.useRealTimers(); });

function following() {
  const live = new RunLive("r");
  const answers: (() => void)[] = [];
  const rowsCame = vi.fn();
  const unfollow = followBatches(live, { onRows: rowsCame, onBatch: () => new Promise<void>((done) => { answers.push(done); }) });
  return { live, answers, rowsCame, unfollow };
}

test("what is asked for after the rows came is not asked for twice", () => {
  const { live, answers, rowsCame } = following();
  live.take(rows(7));
  vi.advanceTimersByTime(5_000);
  expect(rowsCame).toHaveBeenCalledTimes(1);
  expect(answers).toHaveLength(0);
});

test("documents are asked for again after batches, and never while the last answers are under way", async () => {
  const { live, answers } = following();
  live.take(rows(1));
  live.take(rows(2));
  live.take(rows(3));
  vi.advanceTimersByTime(400);
  expect(answers).toHaveLength(1);
  live.take(rows(4));
  vi.advanceTimersByTime(5_000);
  expect(answers).toHaveLength(1);
  answers[0]?.();
  await vi.advanceTimersByTimeAsync(400);
  expect(answers).toHaveLength(2);
  answers[1]?.();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(answers).toHaveLength(2);
});

test("whoever left asks nothing any more", () => {
  const { live, answers, unfollow } = following();
  live.take(rows(1));
  live.take(rows(2));
  unfollow();
  vi.advanceTimersByTime(5_000);
  expect(answers).toHaveLength(0);
});
