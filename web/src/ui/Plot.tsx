/**
 * A plot by uPlot, in the colours of the theme and as wide as there is room. The values at the pointer, or at the
 * place to which the arrow keys lead, are written below it; who cannot see it reads them there, too.
 */
import { useEffect, useRef, useState, type KeyboardEvent } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { axisLabels, type Scale } from "./quantities";
import { useTheme } from "./theme";
import "./plot.css";

export interface PlotProps {
  label: string; // for those who cannot see it
  data: uPlot.AlignedData;
  series: (uPlot.Series & { label: string })[]; // without the first, which is x
  x?: uPlot.Axis & { range?: [number, number]; says?: Scale };
  y: Scale;
  /** What stands at a place of x. */
  place: (index: number) => string;
  height?: number;
}

/** Colours that people with any kind of sight tell apart (Okabe and Ito). */
export const PLOT_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"] as const;

const stepsOf = ({ steps }: Scale): { incrs?: number[] } => (steps === undefined ? {} : { incrs: steps });

/** Where a key leads from a place; null: nowhere. */
export function placeByKey(key: string, at: number | null, count: number): number | null {
  const last = count - 1;
  const places: Record<string, number> = { ArrowRight: at === null ? 0 : at + 1, ArrowLeft: at === null ? last : at - 1, Home: 0, End: last, PageUp: (at ?? 0) + 10, PageDown: (at ?? last) - 10 };
  const to = places[key];
  return to === undefined || last < 0 ? null : Math.max(0, Math.min(last, to));
}

export function Plot({ label, data, series, x = {}, y, place, height = 200 }: PlotProps) {
  const ref = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const theme = useTheme();
  useEffect(() => {
    const element = ref.current;
    if (element === null) return;
    const style = getComputedStyle(element);
    const axis = { stroke: style.getPropertyValue("--muted"), grid: { stroke: style.getPropertyValue("--border"), width: 1 }, ticks: { stroke: style.getPropertyValue("--border"), width: 1 }, font: `${style.getPropertyValue("--size-note")} system-ui, sans-serif` };
    const { range, says, ...axisX } = x;
    const plot = new uPlot(
      {
        width: Math.max(element.clientWidth, 120), height, legend: { show: false }, padding: [10, 8, 0, 0],
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 9 } },
        scales: { x: { time: false, ...(range ? { range } : {}) }, y: { range: (_, min, max) => [Math.min(0, min || 0), max * 1.06 || 1] } },
        axes: [
          { ...axis, ...(says ? { values: (_, splits) => axisLabels(splits, says), ...stepsOf(says) } : {}), ...axisX },
          { ...axis, size: 70, space: 28, values: (_, splits) => axisLabels(splits, y), ...stepsOf(y) },
        ],
        series: [{}, ...series],
        hooks: { setCursor: [(one) => setAt(one.cursor.idx ?? null)] },
      },
      data,
      element,
    );
    drawn.current = plot;
    const watch = new ResizeObserver(() => plot.setSize({ width: Math.max(element.clientWidth, 120), height }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      plot.destroy();
      drawn.current = null;
    };
  }, [data, series, x, y, height, theme]);
  const hear = (event: KeyboardEvent) => {
    const plot = drawn.current;
    const to = placeByKey(event.key, at, data[0].length);
    if (to === null || plot === null || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    plot.setCursor({ left: plot.valToPos(data[0][to] ?? 0, "x"), top: 0 });
    setAt(to);
  };
  const shown = at !== null && at < data[0].length ? at : null;
  const values = (index: number) => series.flatMap((one, number) => {
    const value = data[number + 1]?.[index];
    return value === null || value === undefined ? [] : [{ label: one.label, text: y.text(value), colour: typeof one.stroke === "string" ? one.stroke : "currentcolor" }];
  });
  const said = (index: number) => `${place(index)}: ${values(index).map((one) => `${one.label} ${one.text}`).join(", ")}`;
  return (
    <div className="plot-box">
      <div
        ref={ref} className="plot" style={{ minHeight: height }} tabIndex={0} onKeyDown={hear}
        role="slider" aria-label={label} aria-orientation="horizontal" aria-valuemin={0} aria-valuemax={Math.max(0, data[0].length - 1)} aria-valuenow={shown ?? 0}
        aria-valuetext={shown === null ? "use the arrow keys to read the values" : said(shown)}
      />
      <div className="plot-values" aria-hidden>
        {shown === null
          ? series.length > 1 && series.map((one) => <span key={one.label}><Swatch colour={typeof one.stroke === "string" ? one.stroke : "currentcolor"} /> {one.label}</span>)
          : <><b>{place(shown)}</b>{values(shown).map((one) => <span key={one.label}><Swatch colour={one.colour} /> {one.label} <b>{one.text}</b></span>)}</>}
      </div>
    </div>
  );
}

function Swatch({ colour }: { colour: string }) {
  return <i className="plot-swatch" style={{ background: colour }} />;
}
