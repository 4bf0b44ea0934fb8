/** Each stage of a definition, to be unfolded: what it waits for and needs, its values, its files as they were written. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { stagesQuery, type StageDocument, type StageFile } from "../../api/registry";
import { Button, Failure, Loading } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { durationText } from "../../ui/time";
import { textOf } from "./parameters";
import { factsOf, inOrder } from "./stages";

const SHOWN_MAX = 200; // more are asked for

export function Stages({ name, version, parameters }: { name: string; version: string; parameters: Record<string, unknown> }) {
  const { data, error } = useQuery(stagesQuery(name, version, parameters));
  const [all, setAll] = useState(false);
  const stages = data?.stages ?? [];
  const shown = all ? stages : stages.slice(0, SHOWN_MAX);
  return (
    <section className="card part stages-part" aria-label="Stages">
      <h2>Stages</h2>
      {error !== null && <Failure error={error} />}
      {error === null && data === undefined && <Loading what="the stages" />}
      {error === null && shown.map((one) => <Stage key={one.id} stage={one} />)}
      {error === null && shown.length < stages.length && <Button look="quiet" onClick={() => setAll(true)}>Show all {stages.length}</Button>}
    </section>
  );
}

function Stage({ stage }: { stage: StageDocument }) {
  const [open, setOpen] = useState(false);
  return (
    <details className="stage-row" onToggle={(event) => { if (event.target === event.currentTarget) setOpen(event.currentTarget.open); }}>
      <summary>
        <b>{plain(stage.id)}</b> <span className="muted">{stage.type} {plain(stage.version)}{stage.timeout_seconds === null ? "" : ` · ${durationText(stage.timeout_seconds)}`}{stage.when ? "" : " · switched off"}</span>
      </summary>
      {open && <Unfolded stage={stage} />}
    </details>
  );
}

function Unfolded({ stage }: { stage: StageDocument }) {
  return (
    <>
      <dl className="stage-facts">
        {factsOf(stage).map(([what, text]) => <div key={what}><dt>{what}</dt><dd>{plain(text)}</dd></div>)}
        {stage.parameters.length > 0 && <div><dt>Parameters</dt><dd><ul className="stage-values">{stage.parameters.map((one) => <Value key={one.name} of={one} />)}</ul></dd></div>}
      </dl>
      {inOrder(stage).map((file) => <File key={file.path} file={file} open={file.path === stage.executes} />)}
    </>
  );
}

function Value({ of: { name, value, required, provided_by } }: { of: StageDocument["parameters"][number] }) {
  return (
    <li>
      <code>{plain(name)}</code>{required && <b className="required"> required</b>}
      {value !== undefined && <> = <code>{plain(textOf(value))}</code></>}
      {provided_by !== null && <span className="muted"> given by {plain(provided_by)}</span>}
    </li>
  );
}

function File({ file, open }: { file: StageFile; open: boolean }) {
  const about = `${file.executable ? "executable · " : ""}${file.size} B`;
  if (file.text === null) return <p className="stage-file"><code>{plain(file.path)}</code> <span className="muted">{about} · not text, or too long to be shown here</span></p>;
  return (
    <details className="stage-file" open={open}>
      <summary><code>{plain(file.path)}</code> <span className="muted">{about}</span></summary>
      <pre>{plain(file.text)}</pre>
    </details>
  );
}
