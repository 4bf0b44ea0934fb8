/** The whole graph, small, and the part of it that is in sight: drag there to look elsewhere, turn the wheel to come nearer. */
import { Panel, useReactFlow, useStore, type Viewport } from "@xyflow/react";
import { useCallback, useEffect, useRef, type PointerEvent, type WheelEvent } from "react";
import { useRows } from "../../api/runLive";
import { foldState } from "../../pages/run/folds";
import { lookOf } from "../../ui/palette";
import type { Drawing } from "./drawing";
import { isFailed } from "./legible";
import type { Place, Placed } from "./layout";
import type { Panning } from "./panning";

const WIDTH = 200;
const HEIGHT = 150;
const MARGIN = 6;
const ARM = 3.5; // pixels, of a cross
const CALM_MS = 400; // states may change many times a second

interface Scale {
  factor: number;
  left: number;
  top: number;
}

export function scaleOf({ width, height }: Pick<Placed, "width" | "height">): Scale {
  const factor = Math.min((WIDTH - 2 * MARGIN) / Math.max(width, 1), (HEIGHT - 2 * MARGIN) / Math.max(height, 1));
  return { factor, left: (WIDTH - width * factor) / 2, top: (HEIGHT - height * factor) / 2 };
}

export function Overview({ drawing, placed, panning }: { drawing: Drawing; placed: Placed; panning: Panning }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const sight = useRef<HTMLDivElement>(null);
  const rows = useRows();
  const { setCenter, zoomTo } = useReactFlow();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);

  useEffect(() => {
    const draw = () => {
      const context = canvas.current?.getContext("2d");
      if (context) drawBoxes(context, drawing, placed, (id) => rows.row(id)?.state);
    };
    draw();
    let timer = 0;
    const unsubscribe = rows.subscribe(() => {
      timer ||= window.setTimeout(() => {
        timer = 0;
        draw();
      }, CALM_MS);
    });
    return () => {
      window.clearTimeout(timer);
      unsubscribe();
    };
  }, [drawing, placed, rows]);

  const show = useCallback(
    ({ x, y, zoom }: Viewport) => {
      if (sight.current === null) return;
      const { factor, left, top } = scaleOf(placed);
      sight.current.style.translate = `${left - (x / zoom) * factor}px ${top - (y / zoom) * factor}px`;
      sight.current.style.width = `${(width / zoom) * factor}px`;
      sight.current.style.height = `${(height / zoom) * factor}px`;
    },
    [placed, width, height],
  );
  useEffect(() => {
    show(panning.at);
    return panning.subscribe(show);
  }, [panning, show]);

  const go = (event: PointerEvent) => {
    if (event.buttons !== 1) return;
    const pane = event.currentTarget.getBoundingClientRect();
    const { factor, left, top } = scaleOf(placed);
    void setCenter((event.clientX - pane.left - left) / factor, (event.clientY - pane.top - top) / factor, { zoom: panning.at.zoom });
  };
  const turn = (event: WheelEvent) => void zoomTo(panning.at.zoom * 2 ** (-event.deltaY / 300));
  const take = (event: PointerEvent) => {
    event.currentTarget.setPointerCapture(event.pointerId);
    go(event);
  };
  return (
    <Panel position="bottom-right" className="overview nowheel" onPointerDown={take} onPointerMove={go} onWheel={turn} aria-hidden>
      <canvas ref={canvas} width={WIDTH} height={HEIGHT} />
      <div ref={sight} className="in-sight" />
    </Panel>
  );
}

function drawBoxes(context: CanvasRenderingContext2D, drawing: Drawing, placed: Placed, stateOf: (id: string) => string | undefined): void {
  const { factor, left, top } = scaleOf(placed);
  const failed: Place[] = [];
  context.lineWidth = 1;
  context.clearRect(0, 0, WIDTH, HEIGHT);
  context.strokeStyle = "rgb(128 128 128 / 45%)";
  for (const frame of placed.frames) context.strokeRect(left + frame.x * factor, top + frame.y * factor, frame.width * factor, frame.height * factor);
  for (const box of drawing.boxes) {
    const at = placed.boxes.get(box.id);
    const fold = drawing.folds.get(box.id);
    const state = fold ? foldState(fold) : drawing.tasks.get(box.id)?.state;
    if (at === undefined || state === undefined) continue;
    context.fillStyle = lookOf(stateOf(box.id) ?? state).colour;
    context.fillRect(left + at.x * factor, top + at.y * factor, Math.max(1, box.width * factor), Math.max(1, box.height * factor));
    if (isFailed(stateOf(box.id) ?? state)) failed.push({ x: left + (at.x + box.width / 2) * factor, y: top + (at.y + box.height / 2) * factor });
  }
  drawCrosses(context, failed);
}

/** Over everything, and of one size however small the boxes are: a failure is seen without its colour. */
export function drawCrosses(context: Pick<CanvasRenderingContext2D, "beginPath" | "moveTo" | "lineTo" | "stroke" | "strokeStyle" | "lineWidth">, places: readonly Place[]): void {
  context.beginPath();
  for (const { x, y } of places) {
    context.moveTo(x - ARM, y - ARM);
    context.lineTo(x + ARM, y + ARM);
    context.moveTo(x - ARM, y + ARM);
    context.lineTo(x + ARM, y - ARM);
  }
  for (const [colour, width] of [["#fff", 4.5], [lookOf("failed").colour, 2]] as const) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
  }
}
