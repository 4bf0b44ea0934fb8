import { describe, expect, it } from "vitest";
import type { BlockFacts } from "../../api/blocks";
import { canBeAborted, fileNameFor, inInstances, isStuck } from "./blockOrder";

const block = (run: number, sbi: string | null, status: string, never = false): BlockFacts => ({
  id: `PB-${run}`, sbi, type: "offline", workflow: "w", version: "1", parameters: {}, priority: 0, run, status, run_status: status.startsWith("waiting") ? "created" : status, reason: "", driven: false, offered: false, waits: [], never, needs: [],
  created_at: "", updated_at: "", ended_at: null,
});

describe("blocks", () => {
  it("stand in their instances: what needs somebody first, what is over last, else the newest", () => {
    const found = inInstances([block(1, "A", "completed"), block(5, "B", "running"), block(2, "C", "waiting_for_blocks", true), block(4, "D", "running"), block(3, "B", "completed"), block(6, null, "completed")]);
    expect(found.map(([sbi, there]) => [sbi, there.map((one) => one.run)])).toEqual([["C", [2]], ["B", [3, 5]], ["D", [4]], ["Without an instance", [6]], ["A", [1]]]);
  });

  it("are stuck if they never begin or have failed; not if they were stopped or aborted meanwhile", () => {
    expect([block(1, "A", "waiting_for_blocks", true), block(1, "A", "failed"), block(1, "A", "stopped", true), block(1, "A", "aborted"), block(1, "A", "created")].map(isStuck)).toEqual([true, true, false, false, false]);
  });

  it("can be aborted unless they are completed or were: also one that somebody stopped", () => {
    expect([block(1, "A", "created"), block(1, "A", "failed"), block(1, "A", "stopped"), block(1, "A", "completed"), block(1, "A", "aborted")].map(canBeAborted)).toEqual([true, true, true, false, false]);
  });

  it("are read as JSON only where the text looks so", () => {
    expect(['  {"id": 1}', "id: SBI-1", ""].map(fileNameFor)).toEqual(["request.json", "request.yaml", "request.yaml"]);
  });
});
