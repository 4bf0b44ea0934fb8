import { describe, expect, it } from "vitest";
import { archiveType, base64Of, bundleProblem } from "./bundles";

describe("what is dropped", () => {
  it("is an archive by the end of its name", () => {
    expect(["a.zip", "b.tar.gz", "B.TGZ", "c.tar", "flow.cylc", "zip"].map(archiveType)).toEqual([
      "application/zip", "application/gzip", "application/gzip", "application/x-tar", null, null,
    ]);
  });

  it("is one archive, or files of one definition", () => {
    expect(bundleProblem(["a.zip"])).toBe("");
    expect(bundleProblem(["vis-1.0.0.yaml", "notes.txt"])).toBe("");
    expect(bundleProblem(["a.zip", "b.zip"])).toContain("one archive at a time");
    expect(bundleProblem([])).toContain("no file");
  });

  it("travels byte for byte", () => {
    const bytes = Uint8Array.from({ length: 20_000 }, (_, at) => at % 256);
    expect(Uint8Array.from(atob(base64Of(bytes)), (letter) => letter.charCodeAt(0))).toEqual(bytes);
  });
});
