/** Blocks by the instance that asked for them; those that need somebody before the others. */
import type { BlockFacts } from "../../api/blocks";

/** Nothing goes on by itself. */
export const isStuck = (block: BlockFacts): boolean => (block.never && block.run_status === "created") || block.status === "failed";

export const isOver = (block: BlockFacts): boolean => !canBeAborted(block) || block.status === "stopped";

export const canBeAborted = (block: BlockFacts): boolean => block.status !== "completed" && block.status !== "aborted";

const NO_INSTANCE = "Without an instance";

export function inInstances(blocks: readonly BlockFacts[]): [string, BlockFacts[]][] {
  const found = new Map<string, BlockFacts[]>();
  for (const block of blocks) {
    const sbi = block.sbi ?? NO_INSTANCE;
    found.set(sbi, [...(found.get(sbi) ?? []), block]);
  }
  const urgency = (there: readonly BlockFacts[]): number => (there.some(isStuck) ? 0 : there.every(isOver) ? 2 : 1);
  return [...found]
    .map(([sbi, there]): [string, BlockFacts[]] => [sbi, there.sort((a, b) => a.run - b.run)])
    .sort(([, a], [, b]) => urgency(a) - urgency(b) || Math.max(...b.map((one) => one.run)) - Math.max(...a.map((one) => one.run)));
}

/** JSON or YAML, by how it looks: findings have the lines of the text itself. */
export const fileNameFor = (text: string): string => (text.trimStart().startsWith("{") ? "request.json" : "request.yaml");
