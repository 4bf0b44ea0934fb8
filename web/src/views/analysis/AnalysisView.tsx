/** How long tasks wait and run, and how much of the requested resources they use: by name, over cycles. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { attemptsQuery } from "../../api/queries";
import { useLive } from "../../api/runLive";
import { isFiltering, rowFilter } from "../../pages/run/filters";
import { useRunPage, useViewOption } from "../../pages/run/useRunPage";
import { Button, Empty, Failure, Loading } from "../../ui/parts";
import { countText } from "../../ui/quantities";
import { durationText } from "../../ui/time";
import { byName, QUANTITIES, type NameFigures, type Quantity } from "./analysis";
import { Distribution, OverPoints } from "./charts";
import "./analysis.css";

export function AnalysisView() {
  const { run, filters, clearFilters } = useRunPage();
  const { rows, nodes } = useLive();
  const [of, setOf] = useViewOption("analysis", "of", "run");
  const [chosen, setChosen] = useViewOption("analysis", "name", "");
  const found = useQuery(attemptsQuery(run));
  const attempts = useMemo(() => {
    const all = found.data?.attempts ?? [];
    if (!isFiltering(filters)) return all;
    const fits = new Set(rows.filter(rowFilter(filters, (name) => nodes[name]?.families ?? [])).map((row) => row.id));
    return all.filter((one) => fits.has(one.id));
  }, [found.data, filters, rows, nodes]);
  const quantity = QUANTITIES.find((one) => one.id === of) ?? QUANTITIES[0];
  const names = useMemo(() => byName(attempts, quantity), [attempts, quantity]);
  if (found.data === undefined) return found.error === null ? <Loading what="the analysis" /> : <Failure error={found.error} retry={() => void found.refetch()} />;
  const one = names.find((each) => each.name === chosen) ?? names[0];
  return (
    <div className="analysis-view">
      <div className="view-bar">
        <div className="view-toggles" role="group" aria-label="What is compared">
          {QUANTITIES.map((each) => <Button key={each.id} aria-pressed={each === quantity} onClick={() => setOf(each.id)}>{each.title}</Button>)}
        </div>
        <span className="muted">{countText(names.length, "name")}, {countText(names.reduce((sum, each) => sum + each.figures.count, 0), "attempt")}{found.data.left_out && "; older attempts are left out"}</span>
      </div>
      {one === undefined ? (
        <Empty title={`No figures for ${quantity.title} yet`}>
          {isFiltering(filters) ? <Button onClick={clearFilters}>Clear the filters</Button> : reasonFor(quantity)}
        </Empty>
      ) : (
        <div className="analysis-body">
          <Names names={names} quantity={quantity} chosen={one.name} choose={setChosen} />
          <div className="analysis-charts" tabIndex={0} role="region" aria-label="Charts">
            {one.figures.count === 0 ? <Empty title={`No ${quantity.title} figures for ${one.name}`}>{`${countText(one.failed, "attempt")} failed${one.failedAfter.count > 0 ? ` (${one.failedAfter.count === 1 ? "after" : "half of them within"} ${durationText(one.failedAfter.p50)})` : ""}${one.failed === one.ended ? ", and none succeeded" : ""}. ${reasonFor(quantity)}`}</Empty> : (
              <>
                <OverPoints of={one} quantity={quantity} />
                <Distribution of={one} quantity={quantity} />
              </>
            )}
          </div>
        </div>
      )}
    </div>
  );
}

function reasonFor(quantity: Quantity): string {
  if (quantity.id === "run") return "Figures appear with the first job that succeeds.";
  if (quantity.id === "queue") return "Figures appear with the first job that begins.";
  if (quantity.title.startsWith("GPU")) return "Workers measure the GPU every few seconds, on hosts with an NVIDIA GPU. Shorter jobs, containers and Slurm jobs have no figures.";
  return "Workers measure jobs every few seconds. Jobs that end sooner have no figures.";
}

function Names({ names, quantity, chosen, choose }: { names: readonly NameFigures[]; quantity: Quantity; chosen: string; choose: (name: string) => void }) {
  const most = Math.max(...names.map((one) => Math.max(one.figures.max, one.asked ?? 0)), 1e-9);
  const asks = names.some((one) => one.asked !== null);
  return (
    <div className="analysis-names">
      <table>
        <caption className="visually-hidden">{quantity.title} by task name</caption>
        <thead>
          <tr><th>Task</th><th className="wide-cell">Minimum, middle half, maximum{asks && "; ▏requested"}</th><th>Count</th><th>Median</th><th title="90 % are at or below this value">p90</th><th>Maximum</th>{asks && <th>Requested</th>}<th>Failed</th><th title="Half of the failed attempts failed within this time">Failed after</th></tr>
        </thead>
        <tbody>
          {names.map((one) => (
            <tr key={one.name} aria-selected={one.name === chosen} onClick={() => choose(one.name)}>
              <td><button type="button" className="link" title={one.name} aria-pressed={one.name === chosen} onClick={() => choose(one.name)}>{one.name}</button></td>
              <td className="wide-cell">{one.figures.count > 0 && <Box of={one} most={most} quantity={quantity} />}</td>
              <td>{one.figures.count}</td>
              {[one.figures.p50, one.figures.p90, one.figures.max].map((value, place) => <td key={place}>{one.figures.count === 0 ? "" : quantity.text(value)}</td>)}
              {asks && <td>{one.asked === null ? "" : quantity.text(one.asked)}</td>}
              <td className={one.failed > 0 ? "bad-figure" : "faint"}>{one.failed || ""}{one.failed > 0 && one.failed === one.ended ? <span title="No attempt has succeeded"> ✖ always</span> : ""}</td>
              <td className={one.failed > 0 ? "" : "faint"}>{one.failedAfter.count === 0 ? "" : durationText(one.failedAfter.p50)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A box plot on the scale that all names share. */
function Box({ of, most, quantity }: { of: NameFigures; most: number; quantity: Quantity }) {
  const { min, p25, p50, p75, max } = of.figures;
  const at = (value: number) => `${Math.min(100, (100 * value) / most)}%`;
  const wide = (from: number, to: number) => `${Math.max(0.6, (100 * (to - from)) / most)}%`;
  const text = `from ${quantity.text(min)} to ${quantity.text(max)}, half of them between ${quantity.text(p25)} and ${quantity.text(p75)}`;
  return (
    <div className="box-plot" role="img" aria-label={text} title={text}>
      <i className="whisker" style={{ left: at(min), width: wide(min, max) }} />
      <i className="half" style={{ left: at(p25), width: wide(p25, p75) }} />
      <i className="median" style={{ left: at(p50) }} />
      {of.asked !== null && <i className="asked" style={{ left: at(of.asked) }} title={`requested ${quantity.text(of.asked)}`} />}
    </div>
  );
}
