import { expect, test } from "vitest";
import { mayReload } from "./upgrade";

test("a page whose files are gone is loaded anew once, not for ever", () => {
  expect(mayReload(null, 100_000)).toBe(true);
  expect(mayReload("99000", 100_000)).toBe(false);
  expect(mayReload("10000", 100_000)).toBe(true);
});
