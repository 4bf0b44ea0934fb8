/** Small parts that every page uses. */
import type { ButtonHTMLAttributes, ReactNode } from "react";
import { Problem } from "../api/http";
import type { Counts } from "../api/types";
import { lookOf, TASK_STATES } from "./palette";
import { plain } from "./plain";
import { StateIcon } from "./StateIcon";

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { look?: "plain" | "primary" | "danger" | "risky" | "quiet" }; // risky: it leads to what cannot be undone

export function Button({ look = "plain", className = "", ...rest }: ButtonProps) {
  return <button type="button" className={`button ${look} ${className}`} {...rest} />;
}

/** Nothing is here: why, and what to do about it. `page`: and nothing else is on the page. */
export function Empty({ title, children, icon = "○", page = false }: { title: string; children?: ReactNode; icon?: string; page?: boolean }) {
  return (
    <div className="empty" role="status">
      <div className="empty-icon" aria-hidden>{icon}</div>
      {page ? <h1>{title}</h1> : <h2>{title}</h2>}
      <div className="empty-text">{children}</div>
    </div>
  );
}

export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  const problem = error instanceof Problem ? error : null;
  const message = error instanceof Error ? error.message : String(error);
  return (
    <div className="failure" role="alert">
      <p>{plain(message)}</p>
      {problem !== null && problem.findings.length > 0 && (
        <ul>{problem.findings.map((finding) => <li key={finding}>{plain(finding)}</li>)}</ul>
      )}
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return <div className="loading" role="status"><span className="spinner" aria-hidden />Loading {what} …</div>;
}

/** Told beside a bar by shape and count: whoever does not see colours misses nothing. */
const SIGNED = ["failed", "submit-failed", "expired", "running"];
const BAD = ["failed", "submit-failed", "expired", "lost"];
const ACTIVE = ["running", "submitted", "preparing"];
export const patternOf = (state: string): string => (BAD.includes(state) ? "striped" : ACTIVE.includes(state) ? "dotted" : "plain");

/** How many tasks are in which state, as one bar; with `signs` what needs eyes stands beside it. */
export function CountsBar({ counts, total, signs = false }: { counts: Counts; total: number; signs?: boolean }) {
  const shown = ["succeeded", "ended", ...TASK_STATES].filter((state, place, all) => all.indexOf(state) === place && counts[state]);
  const sum = Math.max(total, shown.reduce((found, state) => found + (counts[state] ?? 0), 0), 1);
  const text = shown.map((state) => `${counts[state]} ${state}`).join(", ");
  const bar = (
    <div className="counts-bar" role="img" aria-label={text || "nothing yet"} title={text}>
      {shown.filter((state) => state !== "future").map((state) => (
        <span key={state} className={patternOf(state)} style={{ width: `${(100 * (counts[state] ?? 0)) / sum}%`, backgroundColor: lookOf(state).colour }} />
      ))}
    </div>
  );
  const signed = signs ? SIGNED.filter((state) => counts[state]) : [];
  if (signed.length === 0) return bar;
  return (
    <>
      {bar}
      <span className="counts-signs" aria-hidden>
        {signed.map((state) => <span key={state} title={`${counts[state]} ${state}`}><StateIcon state={state} size={12} />{counts[state]}</span>)}
      </span>
    </>
  );
}

export function Keys({ keys }: { keys: string }) {
  return <span className="keys">{keys.split(" ").map((key) => <kbd key={key}>{key}</kbd>)}</span>;
}
