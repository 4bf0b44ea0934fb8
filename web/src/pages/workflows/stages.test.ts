import { describe, expect, it } from "vitest";
import { elementsText, factsOf, inOrder, resourceText } from "./stages";

const STAGE = {
  id: "image", version: "1.0.0", type: "processing", timeout_seconds: 60, resources: [], dependencies: [], when: true, for_each: null, until: [],
  executes: "stages/image/1.0.0/script.sh", allow: [], compose_2: [], externals: [], parameters: [], outputs: [], files: [],
};
const file = (path: string) => ({ path, size: 1, executable: false, text: "" });

describe("what a stage asks for", () => {
  it("is read with its kind and unit", () => {
    expect(resourceText({ type: "nodes", number: 2, flavour: "receiver", exclusive: true, label: "" })).toBe("2 nodes of receiver, exclusive");
    expect(resourceText({ type: "nodes", number: 1, flavour: "", exclusive: false, label: "sender" })).toBe("1 node labelled sender");
    expect(resourceText({ type: "cpu", value: 0.5 })).toBe("0.5 cores");
    expect(resourceText({ type: "buffer", value: 2 * 1024 ** 3, label: "hot" })).toBe("2.0 GiB of buffer labelled hot");
  });
});

describe("the list of a stage", () => {
  it("is told with its elements, or with where it comes from", () => {
    expect(elementsText({ max: 7, count: 3, items: ["a", 1] })).toBe("3 elements: a, 1, …");
    expect(elementsText({ max: 7, parameter: "beams" })).toBe("the elements of parameter beams, at most 7");
    expect(elementsText({ max: 7, parameter: "" })).toBe("a list that a request gives, of at most 7 elements");
    expect(elementsText({ max: 7, stage: "find", output: "beams" })).toBe("output beams of find, at most 7 elements");
    expect(elementsText({ max: 7, stage: "find" })).toBe("the same elements as find; each element waits for the same element of find");
  });
});

describe("the facts of a stage", () => {
  it("leave out what it does not have", () => {
    expect(factsOf(STAGE)).toEqual([["Timeout", "1 min"]]);
  });

  it("say what it waits for, and which worker can do it", () => {
    const dependencies = [{ type: "stage", value: "ingest", condition: "complete" }, { type: "buffer_object", value: "vis.1", condition: "present" }];
    const facts = new Map(factsOf({ ...STAGE, dependencies, allow: ["bind-mounts", "host-network"], compose_2: ["services.a.attach"], externals: ["network lab must exist (docker network create lab)"], when: false, until: ["plot"], timeout_seconds: null }));
    expect(facts.get("Depends on")).toBe("ingest complete, buffer object vis.1 present");
    expect(facts.get("Needs")).toBe("a worker that allows bind-mounts, host-network (--allow-compose bind-mounts --allow-compose host-network); a worker with docker compose 2, because of services.a.attach; network lab must exist (docker network create lab)");
    expect(facts.get("When")).toContain("switched off");
    expect(facts.get("Until")).toBe("plot ended; then this stage, which is a service, is ended, too");
    expect(facts.get("Timeout")).toBe("none");
  });
});

describe("the files of a stage", () => {
  it("begin with what is executed", () => {
    const files = [file("stages/image/1.0.0/args.json"), file(STAGE.executes), file("stages/image/1.0.0/table")];
    expect(inOrder({ ...STAGE, files }).map((one) => one.path)).toEqual([STAGE.executes, "stages/image/1.0.0/args.json", "stages/image/1.0.0/table"]);
  });
});
