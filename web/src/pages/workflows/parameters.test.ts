import { describe, expect, it } from "vitest";
import { filled, linesOf, textOf, valueOf } from "./parameters";

const parameter = (name: string, required = false) => ({ name, required, stages: [], provided_by: [] });

describe("the values of a request", () => {
  it("are JSON where the text is JSON, else text", () => {
    expect(valueOf("4")).toEqual({ value: 4 });
    expect(valueOf("true")).toEqual({ value: true });
    expect(valueOf('["a", 1]')).toEqual({ value: ["a", 1] });
    expect(valueOf("2026-11-15")).toEqual({ value: "2026-11-15" });
    expect(valueOf('"4"')).toEqual({ value: "4" });
  });

  it("are refused where something begins like JSON and is none", () => {
    expect(valueOf("[1, 2")).toBeNull();
    expect(valueOf('{"a"')).toBeNull();
  });

  it("are shown so that reading them again gives the same", () => {
    for (const value of ["4", "plain", 4, null, [1], { a: "b" }, "[", ""]) expect(valueOf(textOf(value))).toEqual({ value });
  });

  it("leave out what nobody filled in, and tell what is missing or cannot be read", () => {
    const found = filled([parameter("site", true), parameter("nodes"), parameter("beams"), parameter("more", true)], { nodes: "4", beams: "[", more: "  " });
    expect(found).toEqual({ values: { nodes: 4 }, wrong: ["beams"], missing: ["site", "more"] });
  });

  it("are lines for a template that declares none", () => {
    expect(linesOf('NAMES = ["x", "y"]\n\nsite: low\nnonsense\nA = ')).toEqual({ values: { NAMES: ["x", "y"], site: "low" }, wrong: ["nonsense", "A ="] });
  });
});
