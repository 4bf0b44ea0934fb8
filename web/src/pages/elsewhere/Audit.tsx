/** Who did what: every call that changed something, or was refused, the newest first. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { auditQuery } from "../../api/storeQueries";
import type { AuditEntry } from "../../api/storeTypes";
import { Button, Failure } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { At } from "../../ui/time";

const REFUSED_FROM = 400;

export function Audit() {
  const [before, setBefore] = useState<number | null>(null);
  const { data, error, refetch } = useQuery(auditQuery(before));
  if (error !== null && data === undefined) return <Failure error={error} retry={() => void refetch()} />;
  if (data === undefined) return null;
  const { next } = data;
  return (
    <section aria-label="Who did what">
      <div className="page-head second">
        <h2>Who did what</h2>
        <span className="muted">the audit: every call that changed something, or was refused; open a line to see the request</span>
        {before !== null && <Button look="quiet" className="page-end" onClick={() => setBefore(null)}>Newest</Button>}
        {next !== null && <Button look="quiet" className={before === null ? "page-end" : ""} onClick={() => setBefore(next)}>Older</Button>}
      </div>
      <div className="card table-card" tabIndex={0} role="region" aria-label="Calls">
        <table className="plain-table">
          <thead><tr><th>When</th><th>Who</th><th>Did what</th><th>From</th></tr></thead>
          <tbody>
            {data.entries.map((one) => (
              <tr key={one.number}>
                <td className="nowrap"><At at={one.at} /></td>
                <td className="nowrap"><b>{plain(one.who)}</b>{one.token !== null && <span className="faint"> token {one.token}</span>}</td>
                <td><Deed entry={one} /></td>
                <td className="muted">{plain(one.client)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** In words; the request as it was made is a click away. */
function Deed({ entry }: { entry: AuditEntry }) {
  return (
    <details className="deed">
      <summary className={entry.status >= REFUSED_FROM ? "bad-figure" : ""}>{plain(entry.words)}</summary>
      <dl className="deed-request">
        <dt>Request</dt><dd><code>{plain(entry.verb)}</code></dd>
        {entry.target !== "" && <><dt>Target</dt><dd>{plain(entry.target)}</dd></>}
        <dt>Answer</dt><dd>{entry.status}</dd>
        <dt>Correlation</dt><dd><code>{plain(entry.correlation)}</code></dd>
      </dl>
    </details>
  );
}
