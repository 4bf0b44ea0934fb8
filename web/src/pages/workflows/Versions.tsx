/** The versions of a workflow: who registered each and when, and in which lines two of them differ. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { diffQuery, versionsQuery } from "../../api/registry";
import { FileDiffs } from "../../ui/FileDiffs";
import { Button, Failure, Loading } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { Ago } from "../../ui/time";
import { useAddress } from "../useAddress";

export function Versions({ name, version }: { name: string; version: string }) {
  const [search, change] = useAddress();
  const { data, error } = useQuery(versionsQuery(name));
  const against = search.against ?? "";
  return (
    <section className="card part" aria-label="Versions">
      <h2>Versions</h2>
      {error !== null && <Failure error={error} />}
      <ul className="file-list">
        {data?.map((one) => (
          <li key={one.version} aria-current={one.version === version ? "true" : undefined}>
            <span><Link to="/workflows/$workflow/$version" params={{ workflow: name, version: one.version }}>{plain(one.version)}</Link>{one.version === version && <span className="muted"> (shown here)</span>}</span>
            <span className="muted">by {plain(one.registered_by)}, <Ago at={one.registered_at} /> {one.version !== version && <Button look="quiet" aria-pressed={one.version === against} aria-label={`Compare with ${one.version}`} onClick={() => change({ against: one.version === against ? "" : one.version })}>Compare</Button>}</span>
          </li>
        ))}
      </ul>
      {against !== "" && <Diff name={name} version={version} against={against} />}
    </section>
  );
}

/** From the version of this page to the other one. */
function Diff({ name, version, against }: { name: string; version: string; against: string }) {
  const { data, error } = useQuery(diffQuery(name, version, against));
  if (error !== null) return <Failure error={error} />;
  if (data === undefined) return <Loading what="the difference" />;
  return (
    <div className="diff-view" role="region" aria-label={`From ${version} to ${against}`} tabIndex={0}>
      <h3>From {plain(version)} to {plain(against)}</h3>
      {data.files.length === 0 && <p className="muted">Both versions have the same files.</p>}
      <FileDiffs files={data.files} />
    </div>
  );
}
