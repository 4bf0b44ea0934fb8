/** One text with line numbers, colours, and what the validator found at its lines. */
import { memo, useEffect, useMemo, useRef } from "react";
import type { Finding } from "../../api/http";
import { pathText, RENDERED } from "../../ui/FileDiffs";
import { plain } from "../../ui/plain";
import { coloured, findingsByLine, languageOf, type Token } from "./definitionText";

const LINES_MAX = 10_000; // that are drawn; others around the line that is asked for

interface TextProps {
  path: string;
  text: string;
  findings: readonly Finding[];
  line: number | null;
  onLine: (line: number) => void;
}

export function DefinitionText({ path, text, findings, line, onLine }: TextProps) {
  const lines = useMemo(() => coloured(text.split(/\r?\n/), path === RENDERED ? "cylc" : languageOf(path)), [text, path]);
  const marked = useMemo(() => findingsByLine(findings, path), [findings, path]);
  const first = lines.length > LINES_MAX && line !== null ? Math.max(0, Math.min(line - LINES_MAX / 2, lines.length - LINES_MAX)) : 0;
  const shown = lines.slice(first, first + LINES_MAX);
  const scroller = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (line !== null) scroller.current?.querySelector(`[data-line="${line}"]`)?.scrollIntoView({ block: "center" });
  }, [line, path, text]);
  return (
    <div className="code-view" ref={scroller} role="region" tabIndex={0} aria-label={`Text of ${plain(pathText(path))}`}>
      {shown.length < lines.length && <p className="muted">Lines {first + 1} to {first + shown.length} of {lines.length}.</p>}
      <ol className="code-lines" start={first + 1}>
        {shown.map((tokens, place) => {
          const number = first + place + 1;
          return <CodeLine key={number} number={number} tokens={tokens} found={marked.get(number)} asked={number === line} onLine={onLine} />;
        })}
      </ol>
    </div>
  );
}

interface LineProps {
  number: number;
  tokens: readonly Token[];
  found: readonly Finding[] | undefined;
  asked: boolean;
  onLine: (line: number) => void;
}

const CodeLine = memo(function CodeLine({ number, tokens, found, asked, onLine }: LineProps) {
  const worst = found?.some((one) => one.severity === "error") ? "error" : found ? "warning" : "";
  return (
    <li data-line={number} className={`${asked ? "asked " : ""}${worst}`} aria-current={asked ? "location" : undefined}>
      <button type="button" className="line-number" tabIndex={-1} aria-label={`Link to line ${number}`} onClick={() => onLine(number)}>{number}</button>
      <code>{tokens.map(([kind, word], place) => (kind === "" ? plain(word) : <span key={place} className={`code-${kind}`}>{plain(word)}</span>))}</code>
      {found?.map((one, place) => (
        <p key={place} className={`line-finding ${one.severity}`}><b>{one.severity}</b> {plain(one.message)}{one.hint !== "" && <span> → {plain(one.hint)}</span>}</p>
      ))}
    </li>
  );
});
