import { expect, test } from "vitest";
import { shownId, stageName } from "./shown";

const nodes = { image: { families: ["root"], branch: [], title: "imaging 1.0.0", rank: 0, shown: "image" }, "object@vis": { families: [], branch: [], title: "", rank: 1, shown: "buffer object vis" } };

test("a task is called by its id, a stage by its name, and what stages wait for by what it is", () => {
  expect(shownId("1/image", { stages: false, nodes })).toBe("1/image");
  expect(shownId("1/image", { stages: true, nodes })).toBe("image");
  expect(shownId("1/object@vis", { stages: true, nodes })).toBe("buffer object vis");
});
test("elements keep their names, and all of them together are their stage", () => {
  expect(shownId("1/image_item3", { stages: true, nodes })).toBe("image_item3");
  expect(shownId("1/image<item>", { stages: true, nodes })).toBe("image");
  expect(stageName("image")).toBe("image");
});
