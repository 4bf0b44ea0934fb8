/** One version of a workflow: its graph before any run, what it needs, what was found, its runs. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, Navigate, useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "../../api/http";
import { definitionFile, removeWorkflow, runsOfQuery, workflowQuery, type Given, type Parameter, type WorkflowDocument } from "../../api/registry";
import { useMay } from "../../api/session";
import { Confirm } from "../../ui/Confirm";
import { Button, Empty, Failure, Loading } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { Ago, durationText } from "../../ui/time";
import { tookSeconds, usualSeconds } from "../runOrder";
import { RunStatus } from "../RunStatus";
import { DefinitionFiles, useDefinitionPlace } from "./DefinitionFiles";
import { DefinitionGraph } from "./DefinitionGraph";
import { Findings } from "./Findings";
import { textOf } from "./parameters";
import { RequestForm } from "./RequestForm";
import { Stages } from "./Stages";
import { Versions } from "./Versions";
import { Runnable } from "./WorkflowsPage";
import "./workflows.css";

/** An address without a version leads to the highest. */
export function HighestVersionPage() {
  const { workflow = "" } = useParams({ strict: false });
  const { data, error, refetch } = useQuery(workflowQuery(workflow, ""));
  if (error !== null) return <Missing error={error} retry={() => void refetch()} />;
  if (data === undefined) return <Loading what={workflow} />;
  return <Navigate to="/workflows/$workflow/$version" params={{ workflow, version: data.version }} replace />;
}

export function WorkflowPage() {
  const { workflow = "", version = "" } = useParams({ strict: false });
  const { data, error, refetch } = useQuery(workflowQuery(workflow, version));
  if (error !== null && data === undefined) return <Missing error={error} retry={() => void refetch()} />;
  if (data === undefined) return <Loading what={`${workflow}/${version}`} />;
  return <Version key={`${workflow}/${version}`} workflow={data} />;
}

function Missing({ error, retry }: { error: Error; retry: () => void }) {
  if (!(error instanceof Problem) || error.status !== 404) return <Failure error={error} retry={retry} />;
  return <Empty page title="This workflow is not registered">{plain(error.message.split(";")[0] ?? "")}. It may have been removed. <Link to="/workflows">Go to all workflows</Link>.</Empty>;
}

function Version({ workflow }: { workflow: WorkflowDocument }) {
  const [given, setGiven] = useState<Given>({ parameters: {}, points: null });
  const may = useMay("submit");
  const { name, version, findings, parameters } = workflow;
  const { open } = useDefinitionPlace(workflow.files);
  const jump = (file: string, line: number) => {
    open(file, line);
    document.getElementById("definition")?.scrollIntoView({ block: "start" });
  };
  return (
    <div className="plain-page">
      <Head workflow={workflow} may={may} />
      <div className={may ? "workflow-top" : "workflow-top alone"}>
        <section className="card workflow-graph" aria-label="Graph"><DefinitionGraph name={name} version={version} given={given} /></section>
        {may && <RequestForm workflow={workflow} onPreview={setGiven} />}
      </div>
      {workflow.kind === "sip" && <Stages name={name} version={version} parameters={given.parameters} />}
      <div className="workflow-parts">
        <section className="card part" aria-label="What was found">
          <h2>Findings</h2>
          {findings.length === 0 ? <p className="muted">There are no errors, warnings or notes.</p> : <Findings findings={findings} onJump={jump} />}
        </section>
        <Runs name={name} may={may} />
        <section className="card part" aria-label="Parameters">
          <h2>Parameters</h2>
          {parameters.length === 0 ? <p className="muted">{workflow.kind === "flow.cylc" ? "The definition declares no parameters; its templates may use variables." : "The workflow has no parameters."}</p> : <Parameters parameters={parameters} />}
        </section>
        <Versions name={name} version={version} />
      </div>
      <section className="card part definition-part" id="definition" aria-label="Definition">
        <h2>Definition</h2>
        <DefinitionFiles files={workflow.files} findings={findings} contentOf={(path) => ({ key: ["workflows", name, version, "file", path], read: (signal) => definitionFile(name, version, path, signal) })} />
      </section>
    </div>
  );
}

/** Where the files were fetched from. No link: anybody may have written it. */
function cameFrom({ url, ref, commit, folder }: NonNullable<WorkflowDocument["source"]>): string {
  const place = `${url}${ref ? `@${ref}` : ""}${folder ? `#${folder}` : ""}`;
  return commit ? `${place} (commit ${commit.slice(0, 12)})` : place;
}

function Head({ workflow, may }: { workflow: WorkflowDocument; may: boolean }) {
  const { name, version, versions } = workflow;
  const [removing, setRemoving] = useState(false);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const forget = async () => {
    await removeWorkflow(name, version);
    await navigate({ to: "/workflows" });
    queries.removeQueries({ queryKey: ["workflows", name] });
  };
  return (
    <div className="page-head">
      <h1><Link to="/workflows">Workflows</Link> <span className="faint">/</span> {plain(name)}</h1>
      <select aria-label="Version" value={version} onChange={(event) => void navigate({ to: "/workflows/$workflow/$version", params: { workflow: name, version: event.target.value } })}>
        {versions.map((one) => <option key={one}>{one}</option>)}
      </select>
      <Runnable is={workflow.runnable} />
      {workflow.findings.filter((one) => one.code === "worker-needs").map((one) => <span key={one.message} className="muted">{plain(one.message)}</span>)}
      <span className="muted">{workflow.kind} · registered by {plain(workflow.registered_by)}, <Ago at={workflow.registered_at} />{workflow.source ? ` · from ${plain(cameFrom(workflow.source))}` : ""}</span>
      {may && <Button look="risky" className="to-end" onClick={() => setRemoving(true)}>Remove …</Button>}
      {removing && (
        <Confirm title={`Remove ${name}/${version}`} button={`Remove ${version}`} danger stale={["workflows"]} act={forget} onClose={() => setRemoving(false)}>
          <p>No run of this version can be requested any more{versions.length > 1 ? `; ${versions.length - 1} other version${versions.length > 2 ? "s" : ""} of ${plain(name)} ${versions.length > 2 ? "stay" : "stays"}` : ""}. Runs of this version are not affected, even if they are still running. The same bundle can be registered again.</p>
        </Confirm>
      )}
    </div>
  );
}

function Parameters({ parameters }: { parameters: readonly Parameter[] }) {
  return (
    <div className="scroll-x">
      <table className="plain-table">
        <thead><tr><th>Name</th><th>Default</th><th>Stages</th></tr></thead>
        <tbody>
          {parameters.map((one) => (
            <tr key={one.name}>
              <td><code>{plain(one.name)}</code>{one.required && <b className="required"> required</b>}</td>
              <td>{"default" in one ? <code>{plain(textOf(one.default))}</code> : one.provided_by.length > 0 ? <span className="muted">given by {plain(one.provided_by.join(", "))}</span> : ""}</td>
              <td className="muted">{plain(one.stages.join(", "))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A bar on the scale that all runs share; nothing for a run that has not ended. */
function Took({ seconds, usual, most }: { seconds: number; usual: number; most: number }) {
  if (seconds === 0) return <span />;
  const at = (value: number) => `${(100 * value) / most}%`;
  return (
    <span className="run-took">
      <span className="took-bar" aria-hidden="true"><i style={{ width: at(seconds) }} />{usual > 0 && <i className="usual" style={{ left: at(usual) }} />}</span>
      <span className="muted nowrap">took {durationText(seconds)}</span>
    </span>
  );
}

function Runs({ name, may }: { name: string; may: boolean }) {
  const { data: runs, error } = useQuery(runsOfQuery(name));
  const took = (runs ?? []).map((run) => tookSeconds(run) ?? 0);
  const usual = usualSeconds(runs ?? []).get(name);
  return (
    <section className="card part" aria-label="Runs">
      <h2>Runs</h2>
      {error !== null && <Failure error={error} />}
      {runs?.length === 0 && <p className="muted">This workflow has not run yet. {may ? "Request a run above, or:" : "A user with the scope submit can request a run:"} <code>tidewheel run {plain(name)} --server {location.origin}</code></p>}
      {usual !== undefined && <p className="muted">Completed runs usually take {durationText(usual)} from start to end. Each bar shows how long one run took; ▏ marks the usual time.</p>}
      <ul className="file-list run-rows">
        {runs?.map((run, place) => (
          <li key={run.number}>
            <Link to="/runs/$run" params={{ run: run.name }} title={plain(run.folder)}>{plain(run.name)}</Link>
            <span><RunStatus run={run} /></span>
            <Took seconds={took[place] ?? 0} usual={usual ?? 0} most={Math.max(...took)} />
            <span className="muted nowrap"><Link to="/definition" search={{ run: run.name }}>definition</Link> · <Ago at={run.created_at} /></span>
          </li>
        ))}
      </ul>
    </section>
  );
}
