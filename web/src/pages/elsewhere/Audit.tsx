/** Who did what: every call that changed something, or was refused, the newest first. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { auditQuery } from "../../api/storeQueries";
import { Button, Failure } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { At } from "../../ui/time";

const REFUSED_FROM = 400;

/** "POST /api/v1/runs/{run}/trigger" is known by its last words. */
export const deedText = (verb: string): string => verb.replace("/api/v1/", "");

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
        <span className="muted">the audit: every call that changed something</span>
        {before !== null && <Button look="quiet" className="page-end" onClick={() => setBefore(null)}>Newest</Button>}
        {next !== null && <Button look="quiet" className={before === null ? "page-end" : ""} onClick={() => setBefore(next)}>Older</Button>}
      </div>
      <div className="card table-card" tabIndex={0} role="region" aria-label="Calls">
        <table className="plain-table">
          <thead><tr><th>When</th><th>Who</th><th>Did</th><th>To</th><th>Answer</th><th>From</th></tr></thead>
          <tbody>
            {data.entries.map((one) => (
              <tr key={one.number}>
                <td className="nowrap"><At at={one.at} /></td>
                <td><b>{plain(one.who)}</b>{one.token !== null && <span className="faint"> {one.token}</span>}</td>
                <td><code>{plain(deedText(one.verb))}</code></td>
                <td className="audit-target">{plain(one.target)}</td>
                <td className={one.status >= REFUSED_FROM ? "bad-figure" : ""}>{one.status}</td>
                <td className="muted">{plain(one.client)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
