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
    answers: () => (done.push("asked"), Promise.resolve(questions-- <= 0)),
    pause: () => (done.push("waited"), Promise.resolve()),
    reload: () => (done.push("reloaded"), mayLoadAnew),
  };
  return { around, done };
}

function failing(times: number) {
  return () => (times-- > 0 ? Promise.reject(new Error("Failed to fetch")) : Promise.resolve("part"));
}

test("a part waits for a server that is away, and the tab stays", async () => {
  const { around, done } = away(3);
  expect(await loaded(failing(1), around)).toBe("part");
  expect(done).toEqual(["asked", "waited", "asked", "waited", "asked", "waited", "asked"]);
});

test("a part without its style counts as missing", async () => {
  const { around } = away(0);
  let style = false;
  expect(await loaded(() => Promise.resolve(style ? "part" : ((style = true), undefined)), around)).toBe("part");
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
