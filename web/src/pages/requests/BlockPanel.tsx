/** One processing block: what it waits for, each stage with its state, and the button that ends it. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { abortBlock, blockHistoryQuery, blockQuery, type BlockDocument, type Stage } from "../../api/blocks";
import { useMay } from "../../api/session";
import { Confirm } from "../../ui/Confirm";
import { Button, Failure, Loading } from "../../ui/parts";
import { inWords } from "../../ui/palette";
import { plain } from "../../ui/plain";
import { StateWord } from "../../ui/StateIcon";
import { Ago, Took } from "../../ui/time";
import { canBeAborted } from "./blockOrder";

export function BlockPanel({ id, onClose, onChoose }: { id: string; onClose: () => void; onChoose: (id: string) => void }) {
  const { data: block, error } = useQuery(blockQuery(id));
  const [aborting, setAborting] = useState(false);
  const may = useMay("operate");
  return (
    <aside className="block-panel card part" aria-label={`Block ${id}`}>
      <div className="block-head">
        <h2>{plain(id)}</h2>
        <Button look="quiet" onClick={onClose} aria-label="Close">✕</Button>
      </div>
      {error !== null && <Failure error={error} />}
      {block === undefined && error === null && <Loading what={id} />}
      {block && (
        <>
          <p><StateWord state={block.status} kind="blocks" /> {block.reason !== "" && <span className="muted">{plain(block.reason)}</span>}</p>
          <p className="muted">{plain(block.workflow)}{block.version === null ? "" : `/${block.version}`} · changed <Ago at={block.updated_at} />{block.run_status === "created" ? "" : <> · <Link to="/runs/$run" params={{ run: id }}>its run</Link></>}</p>
          {block.why.map((one) => <p key={one} className="muted stage-why">{plain(one)}</p>)}
          <Needs block={block} onChoose={onChoose} />
          {Object.keys(block.parameters).length > 0 && <details><summary>Parameters</summary><pre>{plain(JSON.stringify(block.parameters, null, 2))}</pre></details>}
          <h3>Stages</h3>
          {block.stages.length === 0 && <p className="muted">No stage has been created yet.</p>}
          <ul className="stage-list">{block.stages.map((stage) => <StageLine key={stage.id} run={id} stage={stage} linked={block.run_status !== "created"} />)}</ul>
          <Story id={id} />
          {may && canBeAborted(block) && <div className="dialog-foot"><Button look="risky" onClick={() => setAborting(true)}>Abort …</Button></div>}
          {aborting && <Abort block={block} onClose={() => setAborting(false)} />}
        </>
      )}
    </aside>
  );
}

function Needs({ block, onChoose }: { block: BlockDocument; onChoose: (id: string) => void }) {
  if (block.needs.length === 0) return null;
  return (
    <>
      <h3>{block.never ? "It waits for something that can no longer happen" : "It begins after"}</h3>
      <ul className="need-list">
        {block.needs.map((one) => (
          <li key={`${one.block} ${one.condition}`} className={one.state}>
            {one.block === "" ? "a block that you may not see" : <button type="button" className="link" onClick={() => onChoose(one.block)}>{plain(one.block)}</button>} {one.condition}
            <span className="muted"> · {one.status === "" ? "" : `is ${inWords(one.status)}, `}{one.state}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

function StageLine({ run, stage, linked }: { run: string; stage: Stage; linked: boolean }) {
  const name = stage.stage ?? `object ${stage.object ?? stage.id}`;
  return (
    <li>
      <div className="stage-head">
        {linked ? <Link to="/runs/$run" params={{ run }} search={{ select: stage.id }}>{plain(name)}</Link> : <b>{plain(name)}</b>}
        <StateWord state={stage.status} remarks={stage.submit === 0 ? stage.remarks : []} kind="blocks" />
        <span className="muted"><Took from={stage.started_at} to={stage.ended_at} /></span>
      </div>
      {stage.error !== null && <p className="stage-error">{plain(stage.error)}</p>}
      {stage.why.map((one) => <p key={one} className="muted stage-why">{plain(one)}</p>)}
      {stage.values !== null && <p className="muted stage-why">returned <code>{plain(JSON.stringify(stage.values))}</code></p>}
    </li>
  );
}

function Story({ id }: { id: string }) {
  const [open, setOpen] = useState(false);
  const { data: events, error } = useQuery({ ...blockHistoryQuery(id), enabled: open });
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>What happened</summary>
      {error !== null && <Failure error={error} />}
      <ol className="need-list">
        {events?.map((one, place) => (
          <li key={place}><Ago at={one.at} /> <b>{one.stage === null ? "" : `${plain(one.stage)} `}</b>{inWords(one.event)} <span className="muted">{plain(one.text)}</span></li>
        ))}
      </ol>
    </details>
  );
}

function Abort({ block, onClose }: { block: BlockDocument; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const stages = block.stages.filter((one) => one.stage !== null);
  const active = stages.filter((one) => ["running", "preparing"].includes(one.status)).map((one) => one.stage ?? one.id);
  const open = stages.filter((one) => ["waiting", "ready"].includes(one.state) || one.status === "waiting_for_resources").length;
  return (
    <Confirm title={`Abort ${block.id}`} button="Abort it" danger stale={["blocks"]} act={() => abortBlock(block.id, reason.trim())} onClose={onClose}>
      <p>{active.length > 0 ? `${active.join(", ")} ${active.length === 1 ? "is" : "are"} running and will be ended at once.` : "None of its stages is running now."} {open > 0 ? `${open} stage${open === 1 ? "" : "s"} that wait${open === 1 ? "s" : ""} will not begin.` : ""} Blocks that wait for this block to start, complete or fail will never begin; blocks that wait for it to be aborted or finished will begin.</p>
      <label className="field"><span>Reason, which others can read</span><input className="input" maxLength={1000} value={reason} onChange={(event) => setReason(event.target.value)} /></label>
    </Confirm>
  );
}
