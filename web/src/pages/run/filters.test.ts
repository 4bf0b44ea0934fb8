import { expect, test } from "vitest";
import { globMatcher } from "../../ui/globs";
import { parseSearch, stringifySearch } from "../search";
import { readFilters, rowFilter } from "./filters";

const row = { state: "waiting", remarks: ["held"], name: "tide_model", point: "20300101T0000Z", flows: [1, 2] };
const fits = (search: string) => rowFilter(readFilters(parseSearch(search)), () => ["MODELS", "root"])(row);

test.each(["", "?state=waiting", "?state=failed,held", "?name=tide", "?name=t*l", "?name=MODELS", "?name=mod*", "?name=2030*/tide*:held", "?name=:wait", "?name=*/MODELS", "?name==tide_model", "?point=2030*", "?flow=2", "?state=held&flow=1"])("%s means the task", (search) => {
  expect(fits(search)).toBe(true);
});
test.each(["?state=failed", "?name=wave", "?name=tide?", "?name=tide:failed", "?name=2031*/tide*", "?name=2030", "?name==tide", "?point=2031*", "?flow=3"])("%s does not mean it", (search) => {
  expect(fits(search)).toBe(false);
});
test("letters that mean something elsewhere mean themselves in a glob", () => {
  expect(globMatcher("a.b*")("axb")).toBe(false);
  expect(globMatcher("(*")("(x")).toBe(true);
});
test("an address is read as it was written, and ids stay readable", () => {
  const search = { views: "graph,table", select: "1/a", name: "a&b=<c>" };
  const text = stringifySearch({ ...search, empty: "", none: undefined });
  expect(text).toContain("views=graph,table&select=1/a");
  expect(parseSearch(text)).toEqual(search);
});
