/** What a run runs: its definition as it was read, with its findings, the files that were kept with it, and what reloads changed. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { runDefinitionQuery, runDiffQuery, runVersionsQuery, type KeptDefinition } from "../../api/registry";
import type { RunVersions } from "../../api/generated/run_details";
import { FileDiffs, pathText, RENDERED } from "../../ui/FileDiffs";
import { Button, Empty, Failure, Loading } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { Ago, At } from "../../ui/time";
import { useAddress } from "../useAddress";
import { DefinitionFiles, useDefinitionPlace } from "./DefinitionFiles";
import { bytesOfBase64 } from "./definitionText";
import { Findings } from "./Findings";
import "./workflows.css";

export function RunDefinitionPage() {
  const [search] = useAddress();
  const run = search.run ?? "";
  const { data, error, refetch } = useQuery({ ...runDefinitionQuery(run), enabled: run !== "" });
  if (run === "") return <Empty page title="The address does not name a run">Open a run, and from there its definition.</Empty>;
  if (error !== null) return <Failure error={error} retry={() => void refetch()} />;
  if (data === undefined) return <Loading what={`the definition of ${run}`} />;
  return <Shown run={run} kept={data} />;
}

function Shown({ run, kept }: { run: string; kept: KeptDefinition }) {
  const { data: told, error } = useQuery(runVersionsQuery(run));
  const rendered = kept.kind === "sip" ? [] : [{ path: RENDERED, size: kept.text.length, executable: false }];
  const own = kept.files.map(({ path, content, executable }) => ({ path, executable, size: Math.floor((content.length * 3) / 4) - (content.endsWith("==") ? 2 : content.endsWith("=") ? 1 : 0) }));
  const files = [...rendered, ...own];
  const { open } = useDefinitionPlace(files);
  const bytesOf = (path: string) => (path === RENDERED ? new TextEncoder().encode(kept.text) : bytesOfBase64(kept.files.find((one) => one.path === path)?.content ?? ""));
  const findings = told?.findings ?? [];
  return (
    <div className="plain-page">
      <div className="page-head">
        <h1>Definition of <Link to="/runs/$run" params={{ run }}>{plain(run)}</Link></h1>
        <span className="muted">{kept.kind} · {kept.digest.slice(0, 12)}</span>
      </div>
      <div className="workflow-parts">
        <section className="card part" aria-label="What was found">
          <h2>Findings</h2>
          {error !== null && <Failure error={error} />}
          {told && (findings.length === 0 ? <p className="muted">There are no errors, warnings or notes.</p> : <Findings findings={findings} onJump={(file, line) => open(file, line)} />)}
        </section>
        {told && <RunVersionList run={run} told={told} />}
      </div>
      <section className="card part definition-part" aria-label="Definition">
        <DefinitionFiles
          files={files} findings={findings} titleOf={pathText}
          contentOf={(path) => ({ key: ["definition", run, kept.digest, path], read: () => Promise.resolve(bytesOf(path)) })}
        />
      </section>
    </div>
  );
}

/** Each reload that changed something, and what it changed: which one is open is in the address. */
function RunVersionList({ run, told }: { run: string; told: RunVersions }) {
  const [search, change] = useAddress();
  const asked = /^\d{1,9}$/.test(search.reload ?? "") ? Number(search.reload) : null;
  const had = new Set(told.versions.map((one) => one.version));
  return (
    <section className="card part" aria-label="Versions">
      <h2>Versions</h2>
      <ul className="file-list">
        {told.versions.map((one, place) => (
          <li key={one.version} aria-current={place === 0 ? "true" : undefined}>
            <span>{one.version}{place === 0 && <span className="muted"> (in use)</span>}</span>
            <span className="muted">
              {one.version === 1 ? "the run began with this version" : `reloaded${one.who === "" ? "" : ` by ${plain(one.who)}`}`}, <At at={one.at} /> (<Ago at={one.at} />){" "}
              {had.has(one.version - 1) && <Button look="quiet" aria-pressed={one.version === asked} aria-label={`What the reload to version ${one.version} changed`} onClick={() => change({ reload: one.version === asked ? "" : String(one.version) })}>Changes</Button>}
            </span>
          </li>
        ))}
      </ul>
      {told.versions.length === 1 && <p className="muted">The definition was never reloaded. A reload first shows what would change.</p>}
      {asked !== null && had.has(asked) && had.has(asked - 1) && <Changed run={run} version={asked} />}
    </section>
  );
}

function Changed({ run, version }: { run: string; version: number }) {
  const { data, error } = useQuery(runDiffQuery(run, version - 1, version));
  if (error !== null) return <Failure error={error} />;
  if (data === undefined) return <Loading what="the difference" />;
  return (
    <div className="diff-view" role="region" aria-label={`From ${version - 1} to ${version}`} tabIndex={0}>
      <h3>From {version - 1} to {version}</h3>
      {data.files.length === 0 && <p className="muted">Both versions have the same files.</p>}
      <FileDiffs files={data.files} />
    </div>
  );
}
