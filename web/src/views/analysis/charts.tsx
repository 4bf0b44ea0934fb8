/** The two plots beside the names: over cycles, and how often. */
import { useMemo } from "react";
import uPlot from "uplot";
import { Plot, PLOT_COLOURS, type PlotProps } from "../../ui/Plot";
import { axisLabels, COUNT, countText } from "../../ui/quantities";
import { histogram, overPoints, type NameFigures, type Quantity } from "./analysis";

const [MAIN, SECOND, THIRD] = PLOT_COLOURS;
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000];
const middle = (points: number): PlotProps["series"][number] => ({ label: "median", stroke: MAIN, width: 2, points: { show: points <= 200, size: 6, fill: MAIN } });

export function OverPoints({ of, quantity }: { of: NameFigures; quantity: Quantity }) {
  const plot = useMemo(() => {
    const { points, middle: values, largest } = overPoints(of.values);
    const x = points.map((_, place) => place);
    const several = largest.some((value, place) => value !== values[place]);
    const data: (number | null)[][] = [x, values];
    const series: PlotProps["series"] = [{ ...middle(points.length), label: several ? "median" : quantity.title.toLowerCase() }];
    if (several) {
      data.push(largest);
      series.push({ label: "maximum", stroke: SECOND, width: 1, points: { show: points.length <= 200, size: 4 } });
    }
    if (of.asked !== null) {
      data.push(x.map(() => of.asked));
      series.push({ label: "requested", stroke: THIRD, width: 2, dash: [6, 5], points: { show: false } });
    }
    const axis = {
      values: (_: uPlot, splits: number[]) => splits.map((one) => (Number.isInteger(one) ? (points[one] ?? "") : "")),
      incrs: WHOLE,
      space: Math.max(50, Math.max(...points.map((point) => point.length)) * 8),
      range: [-0.5, points.length - 0.5] as [number, number],
    };
    return { data: data as uPlot.AlignedData, series, axis, points };
  }, [of, quantity]);
  return (
    <figure>
      <figcaption><b>{of.name}</b> {quantity.title.toLowerCase()} over cycles</figcaption>
      <Plot label={`${quantity.title} of ${of.name} over ${countText(plot.data[0].length, "cycle")}`} data={plot.data} series={plot.series} x={plot.axis} y={quantity} place={(index) => plot.points[index] ?? ""} height={210} />
    </figure>
  );
}

export function Distribution({ of, quantity }: { of: NameFigures; quantity: Quantity }) {
  const plot = useMemo(() => {
    const { width, from, counts } = histogram(of.values.map(({ value }) => value));
    const x = from.map((start) => start + width / 2);
    const bars = uPlot.paths.bars;
    const series: PlotProps["series"] = [{ label: "attempts", stroke: MAIN, fill: `${MAIN}99`, points: { show: false }, ...(bars ? { paths: bars({ size: [0.94, 90] }) } : {}) }];
    const range: [number, number] = [(from[0] ?? 0) - width * 0.1, (from.at(-1) ?? 0) + width * 1.1];
    const axis = { says: quantity, space: 80, range };
    // Where a piece begins and ends, told apart however narrow the pieces are.
    const ends = axisLabels([...from, (from.at(-1) ?? 0) + width].map((end) => Number(end.toPrecision(3))), quantity);
    const place = (index: number) => (counts.length === 1 ? quantity.text(of.figures.p50) : `${ends[index] ?? ""} to ${ends[index + 1] ?? ""}`);
    return { data: [x, counts] as uPlot.AlignedData, series, axis, place };
  }, [of, quantity]);
  return (
    <figure>
      <figcaption><b>{of.name}</b> distribution <span className="muted">{countText(of.figures.count, "attempt")}</span></figcaption>
      <Plot label={`Distribution of ${quantity.title}: ${of.name}`} data={plot.data} series={plot.series} x={plot.axis} y={COUNT} place={plot.place} height={190} />
    </figure>
  );
}
