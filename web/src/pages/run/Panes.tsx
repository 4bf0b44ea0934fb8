/** The views of a run: tabs choose one, Split puts another beside it, and the line between two is dragged. */
import { Fragment, Suspense, useRef, useState, type KeyboardEvent, type PointerEvent } from "react";
import { withKey } from "../../shell/keys";
import { useShortcut } from "../../shell/shortcuts";
import { ErrorBoundary } from "../../ui/ErrorBoundary";
import { Loading } from "../../ui/parts";
import { VIEWS, type ViewDefinition } from "../../views/registry";
import { moved, sharesOf, storeShares, storedShares } from "./sizes";
import { useRunPage } from "./useRunPage";

const STEP = 0.05; // of the width, for a key

export function ViewTabs() {
  const { views, toggleView } = useRunPage();
  const others = VIEWS.filter((view) => !views.includes(view.id));
  return (
    <>
      {VIEWS.map((view) => <ViewTab key={view.id} view={view} />)}
      {others.length > 0 && (
        <select className="split-view" aria-label="Split: show another view beside this one" title="Show another view beside this one" value="" onChange={(event) => toggleView(event.target.value)}>
          <option value="" disabled hidden>Split …</option>
          {others.map((view) => <option key={view.id} value={view.id}>{view.title}</option>)}
        </select>
      )}
    </>
  );
}

/** The same on a phone, where seven words have no room beside each other. */
export function ViewChoice() {
  const { views, showView } = useRunPage();
  return (
    <select className="view-choice" aria-label="View" value={views.at(-1) ?? ""} onChange={(event) => showView(event.target.value)}>
      {VIEWS.map((view) => <option key={view.id} value={view.id}>{view.title}</option>)}
    </select>
  );
}

function ViewTab({ view }: { view: ViewDefinition }) {
  const { views, showView } = useRunPage();
  useShortcut(`view ${view.id}`, () => showView(view.id));
  return (
    <button type="button" className="button" aria-pressed={views.includes(view.id)} title={withKey(view.says, `view ${view.id}`)} onClick={() => showView(view.id)}>
      {view.title}
    </button>
  );
}

export function Panes({ views }: { views: readonly ViewDefinition[] }) {
  const { toggleView } = useRunPage();
  const box = useRef<HTMLDivElement>(null);
  const [said, setSaid] = useState(storedShares);
  const ids = views.map(({ id }) => id);
  const shares = sharesOf(ids, said);
  const move = (place: number, by: number) => {
    const next = { ...said, ...moved(ids, shares, place, by) };
    setSaid(next);
    storeShares(next);
  };
  const columns = shares.map((share) => `minmax(0, ${share.toFixed(4)}fr)`).join(" 7px ");
  return (
    <div ref={box} className="panes" style={{ "--columns": columns } as Record<string, string>}>
      {views.map(({ id, title, View }, place) => (
        <Fragment key={id}>
          {place > 0 && <Divider between={[views[place - 1]?.title ?? "", title]} share={shares[place - 1] ?? 0} move={(by) => move(place - 1, by)} widthOf={() => box.current?.clientWidth ?? 1} />}
          <section className={views.length > 1 ? "view split" : "view"} aria-label={title}>
            {views.length > 1 && <button type="button" className="close-view" aria-label={`Close ${title}`} title={`Close ${title}`} onClick={() => toggleView(id)}>✕</button>}
            <ErrorBoundary what={`The view “${title}”`}>
              <Suspense fallback={<Loading what={title.toLowerCase()} />}><View /></Suspense>
            </ErrorBoundary>
          </section>
        </Fragment>
      ))}
    </div>
  );
}

interface DividerProps {
  between: [string, string];
  share: number;
  move: (by: number) => void;
  widthOf: () => number;
}

function Divider({ between, share, move, widthOf }: DividerProps) {
  const from = useRef<number | null>(null);
  const drag = (event: PointerEvent) => {
    if (from.current === null) return;
    move((event.clientX - from.current) / widthOf());
    from.current = event.clientX;
  };
  const hear = (event: KeyboardEvent) => {
    const by = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    if (by === undefined) return;
    move(by);
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      className="divider" role="separator" tabIndex={0} aria-orientation="vertical" aria-label={`Width of ${between[0]} and ${between[1]}`} aria-valuenow={Math.round(100 * share)} aria-valuemin={0} aria-valuemax={100}
      onPointerDown={(event) => { from.current = event.clientX; event.currentTarget.setPointerCapture(event.pointerId); }}
      onPointerMove={drag}
      onPointerUp={() => { from.current = null; }}
      onKeyDown={hear}
    />
  );
}
