/** The bars: only rows and times that are in sight are drawn; wheel, drag and keys move them. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState, type KeyboardEvent, type PointerEvent } from "react";
import { shownId } from "../../api/shown";
import { useOpenAt } from "../../pages/run/trouble";
import { useRunPage } from "../../pages/run/useRunPage";
import { endingOf } from "../../ui/endings";
import { StateIcon, stateStyle } from "../../ui/StateIcon";
import { durationText } from "../../ui/time";
import { barsAt, panned, placed, ticksOf, zoomed, type Bar, type Span, type TimeRow } from "./timeline";

const ROW_HEIGHT = 24;
const LABELS = 210; // pixels, where there is room
const TICK_HALF = 28; // a time that would be cut off is not written

interface ChartProps {
  rows: readonly TimeRow[];
  /** Tasks at which it opens. */
  unwell: ReadonlySet<string>;
  whole: Span;
  span: Span;
  setSpan: (span: Span | null) => void;
  now: number;
  live: boolean;
  /** The rows that are on the screen, for whoever zooms. */
  seen: { current: readonly TimeRow[] };
}

/** How wide the times are, without the labels. */
function useWidth(labels: number) {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  useEffect(() => {
    const element = ref.current;
    if (element === null) return;
    const watch = new ResizeObserver(() => setWidth(Math.max(80, element.clientWidth - labels)));
    watch.observe(element);
    return () => watch.disconnect();
  }, [labels]);
  return [ref, width] as const;
}

export function Chart({ rows, unwell, whole, span, setSpan, now, live, seen }: ChartProps) {
  const labels = window.innerWidth < 640 ? 150 : LABELS;
  const [scroller, width] = useWidth(labels);
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => scroller.current, estimateSize: () => ROW_HEIGHT, overscan: 10 });
  useOpenAt(virtual, rows.findIndex((row) => row.bars.some((bar) => unwell.has(bar.id))));
  useEffect(() => {
    const { startIndex = 0, endIndex = rows.length } = virtual.range ?? {};
    seen.current = rows.slice(startIndex, endIndex + 1);
  });
  const latest = useRef({ span, whole, width });
  useEffect(() => {
    latest.current = { span, whole, width };
  });
  // Browsers let only listeners that say so keep a wheel for themselves.
  useEffect(() => {
    const element = scroller.current;
    const turn = (event: WheelEvent) => {
      const { span: seen, whole: all, width: wide } = latest.current;
      const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      if (event.ctrlKey || event.metaKey) {
        const left = (element?.getBoundingClientRect().left ?? 0) + labels;
        const at = Math.min(1, Math.max(0, (event.clientX - left) / wide));
        setSpan(zoomed(seen, Math.exp(event.deltaY * 0.003), at, all));
      } else if (sideways !== 0 && Math.abs(sideways) >= Math.abs(event.shiftKey ? 0 : event.deltaY)) {
        setSpan(panned(seen, sideways / wide, all));
      } else return;
      event.preventDefault();
    };
    element?.addEventListener("wheel", turn, { passive: false });
    return () => element?.removeEventListener("wheel", turn);
  }, [scroller, labels, setSpan]);
  const hear = (event: KeyboardEvent) => {
    const keys: Record<string, () => void> = {
      "+": () => setSpan(zoomed(span, 0.7, barsAt(seen.current, span, now), whole)),
      "-": () => setSpan(zoomed(span, 1.4, 0.5, whole)),
      "0": () => setSpan(null),
      ArrowLeft: () => setSpan(panned(span, -0.2, whole)),
      ArrowRight: () => setSpan(panned(span, 0.2, whole)),
    };
    const found = keys[event.key];
    if (found === undefined || event.ctrlKey || event.metaKey) return;
    found();
    event.preventDefault();
    event.stopPropagation();
  };
  const drag = useDrag(span, whole, width, setSpan);
  const ticks = ticksOf(span, width);
  const line = live ? placed(now, now, span, width) : null;
  const style = { "--labels": `${labels}px` } as Record<string, string>;
  return (
    <div className="timeline-chart" ref={scroller} tabIndex={0} role="group" aria-label="Jobs over time; + and - zoom, the arrow keys scroll" onKeyDown={hear} style={style} {...drag}>
      <div className="time-axis" aria-hidden>
        {ticks.map((tick) => ({ tick, left: placed(tick.at, tick.at, span, width)?.left ?? 0 })).filter(({ left }) => left > TICK_HALF && left < width - TICK_HALF).map(({ tick, left }) => <span key={tick.at} style={{ left: labels + left }}>{tick.text}</span>)}
      </div>
      <div className="time-space" style={{ height: virtual.getTotalSize() }}>
        <div className="time-grid" aria-hidden>
          {ticks.map((tick) => <i key={tick.at} style={{ left: placed(tick.at, tick.at, span, width)?.left ?? 0 }} />)}
          {line && <b className="now-line" style={{ left: line.left }} title="now" />}
        </div>
        <div role="list" aria-label="Jobs">
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index];
            return row === undefined ? null : <RowOfBars key={row.key} row={row} top={item.start} span={span} width={width} now={now} />;
          })}
        </div>
      </div>
    </div>
  );
}

function useDrag(span: Span, whole: Span, width: number, setSpan: (span: Span) => void) {
  const held = useRef<{ x: number; span: Span; moved: boolean } | null>(null);
  return {
    onPointerDown: (event: PointerEvent) => {
      if (event.button === 0 && event.pointerType === "mouse") held.current = { x: event.clientX, span, moved: false };
    },
    onPointerMove: (event: PointerEvent) => {
      if (held.current === null) return;
      const by = event.clientX - held.current.x;
      if (!held.current.moved && Math.abs(by) < 5) return;
      held.current.moved = true;
      setSpan(panned(held.current.span, -by / width, whole));
    },
    onPointerUp: () => { held.current = null; },
    onPointerLeave: () => { held.current = null; },
  };
}

function RowOfBars({ row, top, span, width, now }: { row: TimeRow; top: number; span: Span; width: number; now: number }) {
  const { selected, select } = useRunPage();
  return (
    <div role="listitem" className={`time-row${row.id !== null && row.id === selected ? " selected" : ""}`} style={{ transform: `translateY(${top}px)` }}>
      <button type="button" className="time-label" title={row.label} onClick={() => select(row.id ?? row.bars.at(-1)?.id ?? null)}>
        <StateIcon state={row.outcome} kind="statuses" size={13} /><span>{row.short}</span>
        <span className="visually-hidden">, {row.outcome}{row.critical ? ", on the critical path" : ""}</span>
      </button>
      <div className="time-bars">
        {row.bars.map((bar) => <OneBar key={bar.key} bar={bar} span={span} width={width} now={now} select={select} lit={bar.id === selected} />)}
      </div>
    </div>
  );
}

function OneBar({ bar, span, width, now, select, lit }: { bar: Bar; span: Span; width: number; now: number; select: (id: string) => void; lit: boolean }) {
  const end = bar.endedAt ?? now;
  const waited = placed(bar.queuedAt, bar.startedAt ?? end, span, width);
  const ran = bar.startedAt === null ? null : placed(bar.startedAt, end, span, width);
  const text = barText(bar, now);
  const choose = () => select(bar.id);
  return (
    <>
      {waited && <span className={bar.critical ? "time-bar queued critical" : "time-bar queued"} style={waited} title={text} onClick={choose} />}
      {ran && <span className={`time-bar ran ${bar.outcome}${bar.critical ? " critical" : ""}${lit ? " lit" : ""}`} style={{ ...ran, ...stateStyle(bar.outcome, "statuses") }} title={text} onClick={choose} />}
    </>
  );
}

function barText(bar: Bar, now: number): string {
  const { attempt } = bar;
  const seconds = (from: number, to: number) => durationText(Math.max(0, (to - from) / 1_000));
  const tried = attempt.attempt > 1 ? `, attempt ${attempt.attempt}` : "";
  const waited = `waited ${seconds(bar.queuedAt, bar.startedAt ?? bar.endedAt ?? now)}`;
  const ran = bar.startedAt === null ? "" : `\nran ${seconds(bar.startedAt, bar.endedAt ?? now)}${attempt.worker ? ` on ${attempt.worker}` : ""}`;
  const how = attempt.ended_by === null ? bar.outcome : `${endingOf(attempt.ended_by).word}${attempt.exit_status ? `, exit ${attempt.exit_status}` : ""}`;
  return `${shownId(bar.id)} #${attempt.submit}${tried}: ${how}\n${waited}${ran}${bar.critical ? "\non the critical path" : ""}`;
}
