/** A plot by uPlot, in the colours of the theme and as wide as there is room. */
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useTheme } from "./theme";

export interface PlotProps {
  label: string; // for those who cannot see it
  data: uPlot.AlignedData;
  series: uPlot.Series[]; // without the first, which is x
  x?: uPlot.Axis & { time?: boolean; range?: [number, number] };
  y?: (value: number) => string;
  height?: number;
}

/** Colours that people with any kind of sight tell apart (Okabe and Ito). */
export const PLOT_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"] as const;

export function Plot({ label, data, series, x = {}, y = String, height = 200 }: PlotProps) {
  const ref = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  useEffect(() => {
    const element = ref.current;
    if (element === null) return;
    const style = getComputedStyle(element);
    const axis = { stroke: style.getPropertyValue("--muted"), grid: { stroke: style.getPropertyValue("--border"), width: 1 }, ticks: { stroke: style.getPropertyValue("--border"), width: 1 }, font: "11px system-ui, sans-serif" };
    const { time = false, range, ...axisX } = x;
    const plot = new uPlot(
      {
        width: Math.max(element.clientWidth, 120), height, legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } }, padding: [10, 8, 0, 0],
        scales: { x: { time, ...(range ? { range } : {}) }, y: { range: (_, min, max) => [Math.min(0, min || 0), max * 1.06 || 1] } },
        axes: [{ ...axis, ...axisX }, { ...axis, size: 66, values: (_, splits) => splits.map((one) => y(one)) }],
        series: [{}, ...series],
      },
      data,
      element,
    );
    const watch = new ResizeObserver(() => plot.setSize({ width: Math.max(element.clientWidth, 120), height }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [data, series, x, y, height, theme]);
  return <div ref={ref} className="plot" role="img" aria-label={label} style={{ minHeight: height }} />;
}
