import { expect, test } from "vitest";
import { readViews, VIEWS_MAX, withView } from "./keep";

test("a view of the same name is replaced, and the oldest of too many goes", () => {
  const first = withView([], { name: "mine", search: "name=a" });
  expect(withView(first, { name: "mine", search: "name=b" })).toEqual([{ name: "mine", search: "name=b" }]);
  let views = first;
  for (let number = 0; number < VIEWS_MAX; number++) views = withView(views, { name: `${number}`, search: "" });
  expect([views.length, views[0]?.name]).toEqual([VIEWS_MAX, "0"]);
});

test("what another version or a hand wrote is passed over", () => {
  expect(readViews(null)).toEqual([]);
  expect(readViews("{")).toEqual([]);
  expect(readViews('[{"name":1},{"name":"a","search":"x=1"},null]')).toEqual([{ name: "a", search: "x=1" }]);
});
