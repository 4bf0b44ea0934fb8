/** The registry: every workflow with its versions; a bundle that is dropped here is registered. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { workflowsQuery, type WorkflowFacts } from "../../api/registry";
import { useMay } from "../../api/session";
import { globMatcher } from "../../ui/globs";
import { Empty, Failure, Loading } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { countText } from "../../ui/quantities";
import { Ago } from "../../ui/time";
import { Intake } from "./Intake";
import { needsOf } from "./parameters";
import "./workflows.css";

export function WorkflowsPage() {
  const [text, setText] = useState("");
  const { data, error, refetch } = useQuery(workflowsQuery);
  const may = useMay("submit");
  if (error !== null && data === undefined) return <Failure error={error} retry={() => void refetch()} />;
  if (data === undefined) return <Loading what="workflows" />;
  const fits = globMatcher(text);
  const names = [...new Set(data.map((one) => one.name))].filter(fits);
  return (
    <div className="plain-page">
      <div className="page-head">
        <h1>Workflows</h1>
        <input className="input" type="search" placeholder="Filter by name" aria-label="Filter workflows" value={text} onChange={(event) => setText(event.target.value)} />
      </div>
      {may && <Intake />}
      {data.length === 0 && <NoWorkflows may={may} />}
      {data.length > 0 && names.length === 0 && <Empty title="No workflow matches">{countText(data.length, "version")}; none has “{text}” in its name.</Empty>}
      <ul className="workflow-list">
        {names.map((name) => <WorkflowLine key={name} name={name} versions={data.filter((one) => one.name === name)} />)}
      </ul>
    </div>
  );
}

function NoWorkflows({ may }: { may: boolean }) {
  return (
    <Empty title="Nothing is registered yet">
      {may ? "Drop a bundle above, or use the command line:" : "A user with the scope submit can register a folder with a definition:"}
      <pre>tidewheel register DIR --server {location.origin}</pre>
    </Empty>
  );
}

/** The highest version comes first. */
function WorkflowLine({ name, versions }: { name: string; versions: readonly WorkflowFacts[] }) {
  const [highest, ...others] = versions;
  if (highest === undefined) return null;
  const needs = needsOf(highest.parameters);
  return (
    <li className="workflow-line card">
      <div className="workflow-name">
        <Link to="/workflows/$workflow/$version" params={{ workflow: name, version: highest.version }}>{plain(name)}</Link>
        <span className="muted">{plain(highest.version)} · {highest.kind}</span>
      </div>
      <div className="workflow-facts">
        <Runnable is={highest.runnable} />
        {needs.length > 0 && <span className="muted">needs {needs.map((one) => <code key={one}>{plain(one)}</code>)}</span>}
      </div>
      <div className="workflow-versions muted">
        {others.length > 0 && <>also {others.slice(0, 8).map(({ version }) => <Link key={version} to="/workflows/$workflow/$version" params={{ workflow: name, version }}>{plain(version)}</Link>)}{others.length > 8 && ` and ${others.length - 8} more`}</>}
      </div>
      <div className="muted workflow-when">registered by {plain(highest.registered_by)}, <Ago at={highest.registered_at} /></div>
    </li>
  );
}

export function Runnable({ is }: { is: boolean }) {
  return <span className={is ? "chip good" : "chip alarm"} title={is ? "" : "A request may give the missing values; see the findings on the page of the workflow"}>{is ? "✔ can run" : "✖ cannot run as it is"}</span>;
}
