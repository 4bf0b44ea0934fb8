// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Panning } from "./panning";

beforeEach(() => { vi.useFakeTimers(); });
afterEach(() => { vi.useRealTimers(); });

function canvas() {
  const draw = vi.fn();
  const panning = new Panning(draw);
  const root = document.createElement("div");
  const layer = document.createElement("div");
  layer.className = "react-flow__viewport";
  root.append(layer);
  panning.attach(root);
  return { panning, draw, layer, root };
}

test("what is dragged is moved, and drawn once it rests", () => {
  const { panning, draw, layer, root } = canvas();
  panning.move({ x: 300, y: 10, zoom: 1 });
  panning.move({ x: 400, y: 20, zoom: 1 });
  expect(layer.style.translate).toBe("400px 20px");
  expect(root.className).toBe("panning");
  expect(draw).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1_000);
  expect(draw.mock.calls).toEqual([[{ x: 400, y: 20, zoom: 1 }]]);
  panning.settle({ x: 400, y: 20, zoom: 1 });
  expect([layer.style.translate, root.className]).toEqual(["", ""]);
});

test("a drag that goes on is measured from where it was drawn last", () => {
  const { panning, layer } = canvas();
  panning.move({ x: 100, y: 0, zoom: 1 });
  panning.settle({ x: 100, y: 0, zoom: 1 });
  panning.move({ x: 130, y: 5, zoom: 1 });
  expect(layer.style.translate).toBe("30px 5px");
  panning.settle({ x: 120, y: 0, zoom: 1 });
  expect(layer.style.translate).toBe("10px 5px");
});

test("another scale is drawn at once, and says when names are too small", () => {
  const { panning, draw, root } = canvas();
  panning.move({ x: 0, y: 0, zoom: 0.2 });
  expect(draw).toHaveBeenCalledTimes(1);
  panning.settle({ x: 0, y: 0, zoom: 0.2 });
  expect(root.className).toBe("far");
});

test("where only what is in sight is drawn, it is drawn before much is missing", () => {
  const { panning, draw } = canvas();
  panning.drawsAll(false);
  panning.move({ x: 50, y: 0, zoom: 1 });
  expect(draw).not.toHaveBeenCalled();
  panning.move({ x: 500, y: 0, zoom: 1 });
  expect(draw).toHaveBeenCalledTimes(1);
});
