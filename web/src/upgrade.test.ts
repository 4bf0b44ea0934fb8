import { expect, test } from "vitest";
import { loaded, mayReload, type Surroundings } from "./upgrade";

test("a page whose files are gone is loaded anew once, not for ever", () => {
  expect(mayReload(null, 100_000)).toBe(true);
  expect(mayReload("99000", 100_000)).toBe(false);
  expect(mayReload("10000", 100_000)).toBe(true);
});

/** A server that is away for so many questions; it notes what is done. */
function away(questions: number, mayLoadAnew = true) {
  const done: string[] = [];
  const around: Surroundings = {
    answers: async () => (done.push("asked"), questions-- <= 0),
    pause: async () => void done.push("waited"),
    reload: () => (done.push("reloaded"), mayLoadAnew),
  };
  return { around, done };
}

function failing(times: number) {
  return async () => {
    if (times-- > 0) throw new Error("Failed to fetch");
    return "part";
  };
}

test("a part waits for a server that is away, and the tab stays", async () => {
  const { around, done } = away(3);
  expect(await loaded(failing(1), around)).toBe("part");
  expect(done).toEqual(["asked", "waited", "asked", "waited", "asked", "waited", "asked"]);
});

test("a part without its style counts as missing", async () => {
  const { around } = away(0);
  let style = false;
  expect(await loaded(async () => (style ? "part" : ((style = true), undefined)), around)).toBe("part");
});

test("only a server that answers and lacks the part has the page loaded anew", async () => {
  const { around, done } = away(0);
  const never = loaded(failing(2), around);
  await Promise.race([never, new Promise((resolve) => setTimeout(resolve, 20))]);
  expect(done).toEqual(["asked", "reloaded"]);
});

test("a part that is missing after a reload says so", async () => {
  const { around } = away(0, false);
  await expect(loaded(failing(2), around)).rejects.toThrow("Failed to fetch");
});
