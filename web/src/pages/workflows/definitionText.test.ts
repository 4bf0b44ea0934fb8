import { expect, test } from "vitest";
import { coloured, findingsByLine, languageOf, mainFile, textOfBytes, type Language } from "./definitionText";

const shown = (text: string, language: Language) => coloured(text.split("\n"), language).map((line) => line.filter(([kind]) => kind !== "").map(([kind, word]) => `${kind}:${word}`));

test("sections, keys, strings, templates and comments of a flow.cylc are told apart", () => {
  expect(shown('[[graph]] # first\n  P1D = "a => b"  # daily\n# {% if x %}\nscript = {{ X }}', "cylc")).toEqual([
    ["section:[[graph]]", "comment:# first"], ["key:P1D", 'string:"a => b"', "comment:# daily"], ["comment:# {% if x %}"], ["key:script", "template:{{ X }}"],
  ]);
});

test("a text in three quotes goes over lines", () => {
  expect(shown('R1 = """\n a => b # no comment\n"""\nx = 1', "cylc")).toEqual([["key:R1", 'string:"""'], ["string: a => b # no comment"], ['string:"""'], ["key:x"]]);
});

test("keys of YAML and JSON are keys", () => {
  expect(shown('- id: "vis"\nurl: a#b', "yaml")).toEqual([["key:id", 'string:"vis"'], ["key:url"]]);
  expect(shown('  "a": "#b"', "json")).toEqual([['key:"a"', 'string:"#b"']]);
});

test("no letter of a line is lost or added, however odd it is", () => {
  for (const line of ['a = "', "[[[", "{{ {% }}", '"""\'\'\'', "= =", `x = ${"{".repeat(3_000)}`]) {
    for (const language of ["cylc", "yaml", "json", "script", ""] as const) expect(coloured([line], language)[0]?.map(([, word]) => word).join("")).toBe(line);
  }
});

test("what is not text is not shown as one", () => {
  expect(textOfBytes(new Uint8Array([97, 0]))).toBeNull();
  expect(textOfBytes(new Uint8Array([0xff]))).toBeNull();
  expect(textOfBytes(new TextEncoder().encode("é"))).toBe("é");
});

test("the definition itself is shown first, and findings at their lines", () => {
  expect(mainFile(["bin/x", "flow.cylc"])).toBe("flow.cylc");
  expect(languageOf("vis-1.0.yaml.j2")).toBe("yaml");
  const finding = { severity: "error", code: "x", message: "m", hint: "", file: "/tmp/flow.cylc", line: 3, column: 1 };
  expect([...findingsByLine([finding, { ...finding, file: "other" }], "flow.cylc").keys()]).toEqual([3]);
});
