/** What was asked for in blocks: instances, their processing blocks, and the objects they wait for. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { abortSbi, blocksQuery, sbisQuery, type BlockFacts, type SbiFacts } from "../../api/blocks";
import { useMay } from "../../api/session";
import { Confirm } from "../../ui/Confirm";
import { globMatcher } from "../../ui/globs";
import { inWords } from "../../ui/palette";
import { Button, Empty, Failure, Loading } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { countText } from "../../ui/quantities";
import { StateWord } from "../../ui/StateIcon";
import { Ago } from "../../ui/time";
import { BlockPanel } from "./BlockPanel";
import { canBeAborted, inInstances, isStuck } from "./blockOrder";
import { Objects } from "./Objects";
import { PostInstance } from "./PostInstance";
import "../workflows/workflows.css";
import "./requests.css";

export function RequestsPage() {
  const { block: chosen = "" } = useSearch({ strict: false });
  const navigate = useNavigate();
  const choose = (id: string) => void navigate({ to: "/requests", search: id === "" ? {} : { block: id } });
  const [text, setText] = useState("");
  const [posting, setPosting] = useState(false);
  const { data: sbis = [] } = useQuery(sbisQuery);
  const { data: blocks, error, refetch } = useQuery(blocksQuery);
  const may = useMay("submit");
  if (error !== null && blocks === undefined) return <Failure error={error} retry={() => void refetch()} />;
  if (blocks === undefined) return <Loading what="requests" />;
  const fits = globMatcher(text);
  const shown = blocks.filter((one) => fits(one.id) || fits(one.workflow) || fits(one.status) || fits(inWords(one.status)) || fits(one.sbi ?? ""));
  const stuck = blocks.filter(isStuck).length;
  return (
    <div className="plain-page">
      <div className="page-head">
        <h1>Requests</h1>
        {stuck > 0 && <span className="chip alarm">{stuck} need{stuck === 1 ? "s" : ""} action</span>}
        <input className="input" type="search" placeholder="Filter by name or status" aria-label="Filter blocks" value={text} onChange={(event) => setText(event.target.value)} />
        {may && <Button look={posting ? "plain" : "primary"} aria-expanded={posting} onClick={() => setPosting(!posting)}>Post an instance …</Button>}
      </div>
      {posting && <PostInstance onClose={() => setPosting(false)} />}
      <div className={chosen === "" ? "requests-frame" : "requests-frame with-block"}>
        <div className="instances">
          {blocks.length === 0 && <NoBlocks />}
          {blocks.length > 0 && shown.length === 0 && <Empty title="No block matches">{countText(blocks.length, "block")}; none has “{text}” in its name or status.</Empty>}
          {inInstances(shown).map(([sbi, there]) => (
            <section key={sbi} className="card part" aria-label={sbi}>
              <InstanceHead id={sbi} sbi={sbis.find((one) => one.id === sbi)} blocks={there} />
              <ul className="block-list">{there.map((one) => <BlockLine key={one.id} block={one} chosen={one.id === chosen} onChoose={() => choose(one.id === chosen ? "" : one.id)} />)}</ul>
            </section>
          ))}
          <Objects />
        </div>
        {chosen !== "" && <BlockPanel key={chosen} id={chosen} onClose={() => choose("")} onChoose={choose} />}
      </div>
    </div>
  );
}

function InstanceHead({ id, sbi, blocks }: { id: string; sbi: SbiFacts | undefined; blocks: readonly BlockFacts[] }) {
  const [aborting, setAborting] = useState(false);
  const may = useMay("operate");
  if (sbi === undefined) return <h2>{plain(id)}</h2>;
  return (
    <>
      <div className="instance-head">
        <h2>{plain(id)} <small className="muted">requested by {plain(sbi.requested_by)}, <Ago at={sbi.requested_at} /></small></h2>
        {may && blocks.some(canBeAborted) && <Button look="quiet" aria-label={`Abort ${id}`} onClick={() => setAborting(true)}>Abort all …</Button>}
      </div>
      <p className="instance-facts">
        <StateWord state={sbi.status} kind="blocks" />
        <span className="muted">{[countsOf(sbi), sbi.subarray_id === null ? "" : `subarray ${plain(sbi.subarray_id)}`, sbi.scans === 0 ? "" : `${sbi.scans} scan${sbi.scans === 1 ? "" : "s"}`].filter((one) => one !== "").join(" · ")}</span>
      </p>
      {aborting && <AbortInstance sbi={sbi} onClose={() => setAborting(false)} />}
    </>
  );
}

const countsOf = (sbi: SbiFacts): string => Object.entries(sbi.counts).map(([status, count]) => `${count} ${inWords(status)}`).join(", ");

function AbortInstance({ sbi, onClose }: { sbi: SbiFacts; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const act = async () => {
    const refused = (await abortSbi(sbi.id, reason.trim())).blocks.filter((one) => one.refused !== null);
    if (refused.length > 0) throw new Error(refused.map((one) => `${one.id}: ${one.refused ?? ""}`).join("; "));
  };
  return (
    <Confirm title={`Abort ${sbi.id}`} button="Abort all its blocks" danger stale={["blocks"]} act={act} onClose={onClose}>
      <p>Of its blocks: {countsOf(sbi)}. Blocks that have not ended are aborted for good: running stages are ended at once, and no other stage begins.</p>
      <label className="field"><span>Reason, which others can read</span><input className="input" maxLength={1000} value={reason} onChange={(event) => setReason(event.target.value)} /></label>
    </Confirm>
  );
}

function NoBlocks() {
  return (
    <Empty title="No block has been requested yet">
      A scheduling block instance requests several runs of registered workflows; a run may wait for other runs. Post an instance above, or:
      <pre>tidewheel sbi submit FILE --server {location.origin}</pre>
    </Empty>
  );
}

function BlockLine({ block, chosen, onChoose }: { block: BlockFacts; chosen: boolean; onChoose: () => void }) {
  return (
    <li>
      <button type="button" className={chosen ? "block-line chosen" : "block-line"} aria-pressed={chosen} onClick={onChoose}>
        <b>{plain(block.id)}</b>
        <StateWord state={block.status} kind="blocks" />
        <span className="muted">{plain(block.workflow)}{block.version === null ? "" : `/${block.version}`}{block.type === null ? "" : ` · ${block.type}`}{block.priority === 0 ? "" : ` · priority ${block.priority}`}</span>
        <span className="muted"><Ago at={block.updated_at} /></span>
        {(block.waits.length > 0 || block.never) && <span className={block.never ? "block-waits never" : "block-waits"}>{block.never ? "never begins: " : "waits for "}{plain(block.waits.join("; "))}</span>}
      </button>
    </li>
  );
}
