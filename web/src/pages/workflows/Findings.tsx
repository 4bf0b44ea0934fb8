/** What is wrong or remarkable in a definition: where, and what to do about it. */
import { Problem, type Finding } from "../../api/http";
import { pathText } from "../../ui/FileDiffs";
import { Failure } from "../../ui/parts";
import { plain } from "../../ui/plain";

const SIGNS: Record<string, string> = { error: "✖", warning: "!", note: "·" };

export function placeOf({ file, line, column }: Finding): string {
  if (file === null) return "";
  return `${pathText(file)}${line === null ? "" : `:${line}${column === null ? "" : `:${column}`}`}`;
}

/** `onJump` shows the line of a finding, where there is something to show it in. */
export function Findings({ findings, onJump }: { findings: readonly Finding[]; onJump?: (file: string, line: number) => void }) {
  return (
    <ul className="findings" aria-label="Findings">
      {findings.map((one, place) => (
        <li key={place} className={one.severity}>
          <span className="finding-sign" aria-hidden>{SIGNS[one.severity] ?? "·"}</span>
          <div>
            <p><b>{one.severity}</b> {plain(one.message)}</p>
            {one.hint !== "" && <p className="muted">→ {plain(one.hint)}</p>}
            <p className="faint"><Place finding={one} onJump={onJump} /> {one.code}</p>
          </div>
        </li>
      ))}
    </ul>
  );
}

function Place({ finding, onJump }: { finding: Finding; onJump: ((file: string, line: number) => void) | undefined }) {
  const { file, line } = finding;
  if (onJump === undefined || file === null || line === null) return <code>{plain(placeOf(finding))}</code>;
  return <button type="button" className="link mono" onClick={() => onJump(file, line)}>{plain(placeOf(finding))}</button>;
}

/** What is wrong is told below: only how much of it there is. */
function errorsText(findings: readonly Finding[]): string {
  const errors = findings.filter((one) => one.severity === "error").length;
  return errors === 1 ? "Refused: 1 mistake was found." : `Refused: ${errors} mistakes were found.`;
}

/** A refusal with its findings where it has some. */
export function Refusal({ error }: { error: unknown }) {
  if (!(error instanceof Problem) || error.placed.length === 0) return <Failure error={error} />;
  return (
    <div className="refusal" role="alert">
      <p><b>{errorsText(error.placed)}</b></p>
      <Findings findings={error.placed} />
    </div>
  );
}
