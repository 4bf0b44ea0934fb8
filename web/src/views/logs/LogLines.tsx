/** The lines of a log: only those on the screen are drawn, however many there are. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useMemo, useRef, useState, type CSSProperties, type KeyboardEvent } from "react";
import { useViewOption } from "../../pages/run/useRunPage";
import { useShortcut } from "../../shell/shortcuts";
import { Button, Empty } from "../../ui/parts";
import { piecesOf, type Style } from "./ansi";
import type { LogLine } from "./buffer";
import { linesWith, marked } from "./finding";
import type { LogFollower, LogState } from "./follower";

const LINE_HEIGHT = 18;
const NEAR_END = 40; // pixels from the end that count as the end

export function LogLines({ follower, state, name }: { follower: LogFollower; state: LogState; name: string }) {
  const [wrap, setWrap] = useViewOption("logs", "wrap", "no");
  const [words, setWords] = useState("");
  const [only, setOnly] = useState(false);
  const [at, setAt] = useState(-1); // which of the lines that were found; -1: none yet
  const [stick, setStick] = useState(true);
  const scroller = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  useShortcut("l", "Search in the log", () => field.current?.focus());
  const lines = useMemo(() => follower.buffer.shown, [follower, state.version]); // eslint-disable-line react-hooks/exhaustive-deps -- the version stands for the lines
  const found = useMemo(() => linesWith(lines, words), [lines, words]);
  const filtered = only && words !== "";
  const shown = useMemo(() => (filtered ? found.flatMap((number) => lines[number] ?? []) : lines), [filtered, found, lines]);
  const virtual = useVirtualizer({
    count: shown.length, getScrollElement: () => scroller.current, estimateSize: () => LINE_HEIGHT, overscan: 30,
    getItemKey: (place) => shown[place]?.at ?? place,
  });
  const place = Math.min(at, found.length - 1);
  const current = found[place];

  useEffect(() => {
    follower.held = !stick;
    if (stick && shown.length > 0) virtual.scrollToIndex(shown.length - 1, { align: "end" });
  }, [stick, shown, virtual, follower]);

  const step = (by: number) => {
    if (found.length === 0) return;
    const next = place < 0 && by < 0 ? found.length - 1 : (place + by + found.length) % found.length;
    setAt(next);
    setStick(false);
    virtual.scrollToIndex(filtered ? next : (found[next] ?? 0), { align: "center" });
  };
  const keys = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") { setWords(""); event.currentTarget.blur(); }
  };
  const look = () => {
    const box = scroller.current;
    if (box === null) return;
    setStick(box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END);
  };
  const earlier = async () => {
    const before = follower.buffer.lines.length;
    setStick(false);
    await follower.earlier();
    virtual.scrollToIndex(follower.buffer.lines.length - before, { align: "start" });
  };
  return (
    <>
      <div className="logs-tools">
        <input ref={field} className="input" type="search" placeholder="Search (l)" aria-label="Search in the log" value={words} onChange={(event) => { setWords(event.target.value); setAt(-1); }} onKeyDown={keys} />
        {words !== "" && (
          <>
            <span className="muted nowrap" role="status">{found.length === 0 ? "nowhere in this part" : `${place < 0 ? "" : `${place + 1} of `}${found.length} lines`}</span>
            <Button look="quiet" aria-label="The line before" disabled={found.length === 0} onClick={() => step(-1)}>↑</Button>
            <Button look="quiet" aria-label="The next line" disabled={found.length === 0} onClick={() => step(1)}>↓</Button>
            <label><input type="checkbox" checked={only} onChange={(event) => setOnly(event.target.checked)} /> only these</label>
          </>
        )}
        <label><input type="checkbox" checked={wrap === "yes"} onChange={(event) => setWrap(event.target.checked ? "yes" : "no")} /> wrap</label>
        <span className="muted nowrap end">{sizeText(state.size)} · {state.over ? "it has ended" : state.problem !== null ? "reconnecting" : stick ? "following" : "it may grow"}</span>
        {!stick && <Button onClick={() => setStick(true)}>{state.over ? "To the end ↓" : "Follow ↓"}</Button>}
      </div>
      {shown.length === 0 ? (
        <Empty title={filtered ? "No line of this part has these words" : "Nothing has been written"}>{state.over ? "The job has ended." : "Lines come as they are written."}</Empty>
      ) : (
        <div className={`log-lines${wrap === "yes" ? " wrapped" : ""}`} ref={scroller} onScroll={look} tabIndex={0} role="log" aria-label={`Log of ${name}`} aria-live="off">
          {follower.hasEarlier && (
            <div className="log-earlier"><Button disabled={state.busy || follower.buffer.isFull} onClick={() => void earlier()}>{follower.buffer.isFull ? "No more is kept in this page" : `Earlier lines: ${sizeText(follower.buffer.start)} are before these`}</Button></div>
          )}
          <div className="log-space" style={{ height: virtual.getTotalSize() }}>
            {virtual.getVirtualItems().map((item) => {
              const line = shown[item.index];
              if (line === undefined) return null;
              return (
                <div key={item.key} data-index={item.index} ref={virtual.measureElement} className={line === (current === undefined ? undefined : lines[current]) ? "log-line current" : "log-line"} style={{ transform: `translateY(${item.start}px)` }}>
                  <Line line={line} words={words} />
                </div>
              );
            })}
          </div>
        </div>
      )}
    </>
  );
}

const Line = memo(function Line({ line, words }: { line: LogLine; words: string }) {
  const { pieces } = piecesOf(line.text, line.start);
  return (
    <>
      {marked(pieces, words).map((mark, place) => (mark.found
        ? <mark key={place}>{mark.text}</mark>
        : <span key={place} className={classOf(mark.style)} style={styleOf(mark.style)}>{mark.text}</span>))}
      {pieces.length === 0 && "\u00a0"}
    </>
  );
});

function classOf(style: Style): string {
  const { ink, paper, bold, dim, italic, underline } = style;
  return Object.entries({ ink: ink !== null, paper: paper !== null, bold, dim, italic, underline }).filter(([, is]) => is).map(([name]) => `a-${name}`).join(" ");
}

/** A colour is a number or a name of ours, never a text of the log. */
function styleOf({ ink, paper }: Style): CSSProperties {
  return { ...(ink === null ? {} : { "--ink": ink }), ...(paper === null ? {} : { "--paper": paper }) } as CSSProperties;
}

export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
