/** The lines of a log: only those on the screen are drawn, however many there are. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState, type CSSProperties, type MouseEvent } from "react";
import { useViewOption } from "../../pages/run/useRunPage";
import { Button, Empty } from "../../ui/parts";
import { countText } from "../../ui/quantities";
import { countBefore } from "./buffer";
import { textsOf } from "./finding";
import { logPath, type KnownLine, type LogFollower, type LogPlace, type LogState } from "./follower";
import { LEVEL_WORDS, levelClass, WARNING_RANK } from "./levels";
import { LogText } from "./LogText";
import { LogTools } from "./LogTools";
import { PickedLines } from "./PickedLines";
import { rowsOf, rowsOfHits, type Picked, type Row } from "./rows";
import type { Wanted } from "./search";
import { useLogSearch } from "./useLogSearch";

const LINE_HEIGHT = 18;
const NEAR_END = 40; // pixels from the end that count as the end

export interface LogLinesProps {
  follower: LogFollower;
  state: LogState;
  place: LogPlace;
  name: string;
  picked: Picked | null;
  pick: (lines: Picked | null) => void;
}

export function LogLines({ follower, state, place, name, picked, pick }: LogLinesProps) {
  const [wrap] = useViewOption("logs", "wrap", "no");
  // The scheduler's DEBUG lines are for programs.
  const [level] = useViewOption("logs", place.id === "" ? "run-level" : "level", place.id === "" ? "info" : "debug");
  const least = Math.max(0, LEVEL_WORDS.indexOf(level));
  const [asked, setAsked] = useState<Omit<Wanted, "level">>({ text: "", match: "text", case: false });
  const [only, setOnly] = useState(false);
  const [at, setAt] = useState(-1); // which of the lines that were found; -1: none yet
  const [early, setEarly] = useState(0); // the step that was asked for before a line was found
  const [stick, setStick] = useState(picked === null);
  const [target, setTarget] = useState<number | null>(null); // a byte to scroll to
  const scroller = useRef<HTMLDivElement>(null);
  const isSearched = asked.text !== "" || least >= WARNING_RANK;
  const search = useLogSearch(logPath(place, "/search"), isSearched ? { ...asked, level: least === 0 ? "" : level } : null, state.size);
  const hits = useMemo(() => search?.hits ?? [], [search]);
  const filtered = only && search !== null;
  const rows = useMemo(() => rowsOf(follower.buffer, least), [follower, state.version, least]); // eslint-disable-line react-hooks/exhaustive-deps -- the version stands for the lines
  const shown = useMemo(() => (filtered ? rowsOfHits(hits) : rows), [filtered, hits, rows]);
  const virtual = useVirtualizer({
    count: shown.length, getScrollElement: () => scroller.current, estimateSize: () => LINE_HEIGHT, overscan: 30,
    getItemKey: (place) => shown[place]?.at ?? place,
  });
  const current = hits[Math.min(at, hits.length - 1)];

  useEffect(() => {
    follower.held = !stick;
    if (stick && !filtered && shown.length > 0) virtual.scrollToIndex(shown.length - 1, { align: "end" });
  }, [stick, filtered, shown, virtual, follower]);
  useEffect(() => {
    if (target === null || shown.length === 0) return;
    virtual.scrollToIndex(Math.min(shown.length - 1, countBefore(shown, target)), { align: "center" });
    setTarget(null);
  }, [target, shown, virtual]);

  const goTo = async ({ offset, line }: KnownLine) => {
    setStick(false);
    if (!filtered && !follower.buffer.has(offset)) await follower.show(offset, { offset, line });
    setTarget(offset);
  };
  const from = picked?.from ?? null;
  const seen = useRef<number | null>(null); // that somebody picked here, and so sees
  useEffect(() => {
    if (from === null || seen.current === from) return;
    seen.current = from;
    void follower.showLine(from).then((found) => { if (found !== null) { setStick(false); setTarget(found.offset); } });
  }, [from, follower]);

  const step = (by: number) => {
    if (hits.length === 0) {
      setEarly(search === null ? 0 : by);
      return;
    }
    const next = at < 0 ? (by < 0 ? hits.length - 1 : 0) : (Math.min(at, hits.length - 1) + by + hits.length) % hits.length;
    const hit = hits[next];
    setAt(next);
    if (hit !== undefined) void goTo(hit);
  };
  useEffect(() => {
    // Backwards begins at the last line of all.
    if (early === 0 || search === null || (search.running && (hits.length === 0 || early < 0))) return;
    setEarly(0);
    if (hits.length > 0) step(early);
  }, [early, search, hits]); // eslint-disable-line react-hooks/exhaustive-deps -- once, as soon as there is a line
  const goLine = async (line: number) => {
    setOnly(false);
    const found = await follower.showLine(line);
    if (found === null) return;
    seen.current = found.line;
    pick({ from: found.line, to: found.line });
    setStick(false);
    setTarget(found.offset);
  };
  const goEnd = async () => {
    setOnly(false);
    if (state.later) await follower.show(null);
    setStick(true);
  };
  const look = () => {
    const box = scroller.current;
    if (box === null || filtered) return;
    setStick(!state.later && box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END);
  };
  const earlier = async () => {
    const { start } = follower.buffer;
    setStick(false);
    await follower.earlier();
    setTarget(start);
  };
  const onNumber = (row: Row, event: MouseEvent) => {
    if (row.number === null) return;
    if (filtered) { setOnly(false); void goTo({ offset: row.at, line: row.number }); }
    const first = event.shiftKey && picked !== null ? picked.from : row.number;
    const lines = { from: Math.min(first, row.number), to: Math.max(first, row.number) };
    seen.current = lines.from;
    pick(picked?.from === lines.from && picked.to === lines.to ? null : lines);
  };
  const texts = useMemo(() => textsOf(asked.text, asked.match), [asked]);
  const width = String(shown.at(-1)?.number ?? "").length;
  return (
    <>
      <LogTools
        place={place} state={state} level={level} search={search} asked={asked} only={only} stick={stick} current={at < 0 ? null : Math.min(at, hits.length - 1)}
        setAsked={(next) => { setAsked(next); setAt(-1); setEarly(0); }} setOnly={setOnly} step={step}
        goLine={(line) => void goLine(line)} goEnd={() => void goEnd()} goStart={() => void goTo({ offset: 0, line: 1 })}
      />
      {picked !== null && <PickedLines place={place} rows={shown} picked={picked} clear={() => pick(null)} />}
      {shown.length === 0 ? (
        <Nothing filtered={filtered} found={hits.length > 0} least={least} over={state.over} />
      ) : (
        <div className={`log-lines${wrap === "yes" ? " wrapped" : ""}`} ref={scroller} onScroll={look} tabIndex={0} role="log" aria-label={`Log of ${name}`} aria-live="off">
          {follower.hasEarlier && !filtered && (
            <div className="log-earlier"><Button disabled={state.busy || follower.buffer.isFull} onClick={() => void earlier()}>{follower.buffer.isFull ? "This page cannot show more lines at once: enter a line number above" : `Show earlier lines (${sizeText(follower.buffer.start)})`}</Button></div>
          )}
          <div className="log-space" style={{ height: virtual.getTotalSize(), "--digits": width } as CSSProperties}>
            {virtual.getVirtualItems().map((item) => {
              const row = shown[item.index];
              if (row === undefined) return null;
              const isPicked = picked !== null && row.number !== null && row.number >= picked.from && row.number <= picked.to;
              return (
                <div key={item.key} data-index={item.index} ref={virtual.measureElement} className={`log-line${row.at === current?.offset ? " current" : ""}${isPicked ? " picked" : ""}${levelClass(row.rank)}`} style={{ transform: `translateY(${item.start}px)` }}>
                  {row.number === null ? <span className="log-number" /> : <button type="button" tabIndex={-1} className="log-number" data-number={row.number} aria-label={`Line ${row.number}`} aria-pressed={isPicked} onClick={(event) => onNumber(row, event)} />}
                  <LogText text={row.text} start={row.start} texts={texts} withCase={asked.case} />
                </div>
              );
            })}
          </div>
          {state.later && !filtered && <div className="log-earlier"><Button disabled={state.busy} onClick={() => void follower.later()}>Show later lines ({sizeText(state.size - follower.buffer.end)})</Button></div>}
        </div>
      )}
    </>
  );
}

function Nothing({ filtered, found, least, over }: { filtered: boolean; found: boolean; least: number; over: boolean }) {
  if (filtered) return <Empty title="No line of this log matches">Try another text, a lower level, or the log of another attempt.</Empty>;
  if (least >= WARNING_RANK) return <Empty title={`No line of this part is at level ${LEVEL_WORDS[least] ?? ""} or above`}>{found ? "The arrows above go to the lines that were found in the rest of the log." : "Choose a lower level to see other lines."}</Empty>;
  return <Empty title="Nothing has been written">{over ? "The job has ended." : "Lines appear as they are written."}</Empty>;
}

export function sizeText(bytes: number): string {
  if (bytes < 1_000) return countText(bytes, "byte");
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
