/** How a run is started: its points, its mode, paused or not, its priority. */
import { useId, type ReactNode } from "react";
import type { Problem } from "../../api/http";
import type { RunRange } from "../../api/registry";
import { plain } from "../../ui/plain";
import { MODES, POINTS, PRIORITY, rangeText, refusalOf, wrongOption, type OptionTexts } from "./runOptions";

interface OptionsProps {
  texts: OptionTexts;
  onChange: (part: Partial<OptionTexts>) => void;
  /** Stages have no points. */
  hasPoints: boolean;
  refused: Problem | null;
  /** What a run with these points goes through; null: no points were given, or it is not known yet. */
  range: RunRange | null;
}

export function StartOptions({ texts, onChange, hasPoints, refused, range }: OptionsProps) {
  return (
    <>
      {hasPoints && (
        <details className="start-points" open={POINTS.some(({ name }) => texts[name] !== "")}>
          <summary>Points and mode</summary>
          <div className="start-fields">
            {POINTS.map(({ name, title, says }) => (
              <OptionInput key={name} title={title} says={says} wrong={refusalOf(name, texts[name], refused)}>
                {(about, wrong) => <input className="input mono" value={texts[name]} placeholder="as defined" aria-invalid={wrong} aria-describedby={about} onChange={(event) => onChange({ [name]: event.target.value })} />}
              </OptionInput>
            ))}
            {range !== null && <Range range={range} />}
            <OptionInput title="Mode" says="" wrong="">
              {(about) => <select value={texts.mode} aria-describedby={about} onChange={(event) => onChange({ mode: event.target.value })}>{MODES.map(([mode, words]) => <option key={mode} value={mode}>{words}</option>)}</select>}
            </OptionInput>
          </div>
        </details>
      )}
      <div className="request-options">
        <OptionInput title="Priority" says="" wrong={wrongOption("priority", texts)}>
          {(about, wrong) => <input className="input" type="number" {...PRIORITY} placeholder="as usual" value={texts.priority} aria-invalid={wrong} aria-describedby={about} onChange={(event) => onChange({ priority: event.target.value })} />}
        </OptionInput>
        <label className="tick"><input type="checkbox" checked={texts.paused} onChange={(event) => onChange({ paused: event.target.checked })} /> start paused</label>
      </div>
    </>
  );
}

/** Which points and tasks, before anything runs. */
function Range({ range }: { range: RunRange }) {
  return (
    <div className="start-range" role="status" aria-label="What would run with these points">
      <p>{plain(rangeText(range))}</p>
      <ul>{Object.entries(range.tasks).map(([name, count]) => <li key={name}><span>{plain(name)}</span> <b>{count}</b></li>)}</ul>
    </div>
  );
}

function OptionInput({ title, says, wrong, children }: { title: string; says: string; wrong: string; children: (about: string, wrong: boolean) => ReactNode }) {
  const about = useId();
  return (
    <div className="field">
      <label className="field"><span>{title}</span>{children(about, wrong !== "")}</label>
      <small id={about} className={wrong === "" ? "muted" : "wrong"}>{plain(wrong || says)}</small>
    </div>
  );
}
