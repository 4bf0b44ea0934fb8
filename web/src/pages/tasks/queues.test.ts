import { expect, test } from "vitest";
import type { QueueFacts } from "../../api/storeTypes";
import { isLeft, queueOrder, queueWord } from "./Queues";

const queue = (name: string, more: Partial<QueueFacts> = {}): QueueFacts =>
  ({ queue: name, paused: false, aging: false, fair: false, fence_kill: false, lease_seconds: 60, limits: [], counts: {}, oldest_ready_seconds: null, failed: 0, failed_more: false, ...more });

test("queues that runs left behind are folded away, unless something is open in them or somebody paused them", () => {
  const going = new Set(["run:tide/run2"]);
  const all = [
    queue("default"), queue("run:tide/run1", { counts: { succeeded: 9 } }), queue("run:tide/run2"),
    queue("run:ebb/run1", { counts: { cancelling: 1 } }), queue("run:ebb/run2", { counts: { ready: 1 } }), queue("run:ebb/run3", { paused: true }),
  ];
  expect(all.filter((one) => isLeft(one, going)).map((one) => one.queue)).toEqual(["run:tide/run1"]);
});

test("what was set by hand comes first, then what is open", () => {
  const all = [queue("a"), queue("b", { counts: { ready: 1 } }), queue("c", { paused: true })];
  expect(queueOrder(all).map((one) => one.queue)).toEqual(["c", "b", "a"]);
  expect(all.map((one) => queueWord(one, false))).toEqual(["open", "no worker serves it", "paused"]);
});
