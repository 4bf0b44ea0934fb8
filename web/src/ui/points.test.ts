import { expect, test } from "vitest";
import { sharedPoint, shortPoint, shortTask } from "./points";

test.each([
  ["20261116T0200Z", "20261116T0000Z", "02Z"],
  ["20261116T0230Z", "20261116T0000Z", "0230Z"],
  ["20261116T023005Z", "20261116T0000Z", "023005Z"],
  ["20261116T0200Z", "20261117T0000Z", "11-16 02Z"],
  ["20261116T0200Z", "20251116T0200Z", "2026-11-16 02Z"],
  ["20261116T0200Z", "", "2026-11-16 02Z"],
  ["20261116T0200+0100", "20261116T0000+0100", "02+0100"],
  ["7", "6", "7"],
  ["<script>", "20261116T0000Z", "<script>"],
])("%s among %s is %s", (point, among, text) => {
  expect(shortPoint(point, among)).toBe(text);
});

test("what a list shares need not be said of each", () => {
  const day = ["20261116T0000Z", "20261116T0600Z"];
  expect(shortPoint("20261116T0600Z", sharedPoint(day))).toBe("06Z");
  expect(shortPoint("20261116T0600Z", sharedPoint([...day, "20261117T0000Z"]))).toBe("11-16 06Z");
  expect(shortPoint("20261116T0600Z", sharedPoint([...day, "20271117T0000Z"]))).toBe("2026-11-16 06Z");
  expect(sharedPoint(["1", "2"])).toBe("");
  expect(sharedPoint([])).toBe("");
});

test("a task has its name first", () => {
  expect(shortTask("20261116T0200Z/member_07", "20261116T0000Z")).toBe("member_07 · 02Z");
  expect(shortTask("3/model")).toBe("model · 3");
  expect(shortTask("model")).toBe("model");
});
