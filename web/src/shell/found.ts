/** What the palette finds, and which of it comes first. */
import type { Kind } from "../ui/palette";

export interface Found {
  key: string;
  title: string;
  kind: string;
  state?: [string, Kind];
  /** Words that find it and are not in its title, such as its status. */
  also?: string;
  /** Opens it, or shows what a command would do. */
  go?: () => void;
  /** It is the beginning of something: this is typed instead. */
  complete?: string;
}

const SHOWN_MAX = 40;

/** Every word must be in it; what begins with the first comes before, and what is found by its status alone behind. */
export function rank(title: string, words: readonly string[], also = ""): number {
  const text = title.toLowerCase();
  if (!words.every((word) => text.includes(word) || also.includes(word))) return -1;
  const [head] = words;
  if (head === undefined) return 0;
  return text.startsWith(head) ? 3 : words.every((word) => text.includes(word)) ? 2 : 1;
}

/** The best first. */
export function matching<One extends { title: string; also?: string }>(all: readonly One[], text: string): One[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return all
    .map((one) => ({ one, order: rank(one.title, words, one.also) }))
    .filter(({ order }) => order >= 0)
    .sort((a, b) => b.order - a.order)
    .slice(0, SHOWN_MAX)
    .map(({ one }) => one);
}
