/**
 * A graph that is dragged is moved, not drawn.
 *
 * Theory of operation. The canvas draws at one place and scale (`drawn`) and says where it wants to be (`wanted`). To draw hundreds of
 * boxes takes longer than a frame, and so does to paint them; to move what is painted takes nothing. So while only the place changes, the
 * difference is put on the layer as `translate`, which the browser's compositor does alone (`will-change` in graph.css): no React, no
 * layout, no paint. The canvas draws again when the scale changes, when it rests, and, where only boxes in sight are drawn, before
 * the layer has moved too far.
 */
import { useStore, useStoreApi, type Viewport } from "@xyflow/react";
import { useLayoutEffect, useState } from "react";
import { FAR, nearer, SMALL } from "./legible";

const REST_MS = 160;
const SHIFT_MAX = 160; // pixels, where only what is in sight is drawn
export const DOTS = 22; // pixels from one dot of the background to the next
const START: Viewport = { x: 0, y: 0, zoom: 1 };

export class Panning {
  private drawn = START;
  private wanted = START;
  private root: HTMLElement | null = null;
  private timer = 0;
  private readonly listeners = new Set<(at: Viewport) => void>();
  private whole = true;

  constructor(private readonly draw: (at: Viewport) => void) {}

  attach(root: HTMLElement | null): void {
    this.root = root;
    this.show();
  }

  /** Whether everything is drawn, or only what is in sight. */
  drawsAll(whole: boolean): void {
    this.whole = whole;
  }

  /** Where the canvas wants to be; it may be drawn elsewhere. */
  get at(): Viewport {
    return this.wanted;
  }

  readonly subscribe = (listener: (at: Viewport) => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly move = (to: Viewport): void => {
    this.wanted = to;
    window.clearTimeout(this.timer);
    const isFar = Math.hypot(to.x - this.drawn.x, to.y - this.drawn.y) > SHIFT_MAX;
    if (to.zoom !== this.drawn.zoom || (isFar && !this.whole)) this.draw(to);
    else {
      this.show();
      this.timer = window.setTimeout(() => this.draw(this.wanted), REST_MS);
    }
    this.listeners.forEach((listener) => listener(to));
  };

  /** The canvas has drawn at this place. */
  readonly settle = (at: Viewport): void => {
    this.drawn = at;
    this.show();
  };

  stop(): void {
    window.clearTimeout(this.timer);
  }

  private show(): void {
    if (this.root === null) return;
    const [x, y] = [this.wanted.x - this.drawn.x, this.wanted.y - this.drawn.y];
    const moved = this.wanted.zoom === this.drawn.zoom && (x !== 0 || y !== 0);
    put(this.root.querySelector(".react-flow__viewport"), moved ? `${x}px ${y}px` : "");
    const gap = DOTS * this.drawn.zoom;
    put(this.root.querySelector(".react-flow__background"), moved ? `${x % gap}px ${y % gap}px` : "");
    this.root.classList.toggle("panning", moved);
    this.root.classList.toggle("small", this.drawn.zoom < SMALL && this.drawn.zoom >= FAR);
    this.root.classList.toggle("far", this.drawn.zoom < FAR);
    const grown = nearer(this.drawn.zoom).toFixed(3);
    if (this.root.style.getPropertyValue("--nearer") !== grown) this.root.style.setProperty("--nearer", grown); // every text is laid out anew
  }
}

function put(layer: Element | null, translate: string): void {
  if (layer instanceof HTMLElement || layer instanceof SVGElement) layer.style.translate = translate;
}

/**
 * For a canvas: `viewport={HELD}` and `onViewportChange={panning.move}`, and `Settling` within it. To be told a viewport keeps the canvas from
 * drawing by itself; that it is always the same keeps it from being put back, which would end a glide or a turn of the wheel half-way.
 */
export const HELD = START;

export function usePanning(whole: boolean): Panning {
  const store = useStoreApi();
  const [panning] = useState(() => new Panning(({ x, y, zoom }) => store.setState({ transform: [x, y, zoom] })));
  useLayoutEffect(() => panning.drawsAll(whole), [panning, whole]);
  useLayoutEffect(() => () => panning.stop(), [panning]);
  return panning;
}

/** In the same moment in which the canvas is drawn at its place, what was moved goes back. */
export function Settling({ panning }: { panning: Panning }): null {
  const root = useStore((state) => state.domNode);
  const [x, y, zoom] = useStore((state) => state.transform);
  useLayoutEffect(() => panning.attach(root), [panning, root]);
  useLayoutEffect(() => panning.settle({ x, y, zoom }), [panning, x, y, zoom]);
  return null;
}
