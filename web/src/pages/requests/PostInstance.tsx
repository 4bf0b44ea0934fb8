/** A scheduling block instance as text: every block of it is asked for, or none. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { postSbi } from "../../api/blocks";
import { useDeed } from "../../ui/deed";
import { Button } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { Findings, Refusal } from "../workflows/Findings";
import { fileNameFor } from "./blockOrder";

const EXAMPLE = `id: SBI-20261115-project-night
version: "2.0"
processing_blocks:
  - id: PB-20261115-project-first
    type: realtime
    workflow: {id: imaging, version: 1.0.0, parameters: {}}
`;

export function PostInstance({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const queries = useQueryClient();
  const posting = useDeed({
    mutationFn: (dryRun: boolean) => postSbi(text, fileNameFor(text), dryRun),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["blocks"] }),
  });
  const read = (file: File | undefined) => void file?.text().then((found) => { setText(found); posting.reset(); });
  return (
    <form
      className="card part post-instance" aria-label="Post an instance" onSubmit={(event) => { event.preventDefault(); posting.mutate(false); }}
      onDragOver={(event) => event.preventDefault()} onDrop={(event) => { event.preventDefault(); read(event.dataTransfer.files[0]); }}
    >
      <label className="field">
        <span>YAML or JSON; a file can be dropped here</span>
        <textarea className="input mono" rows={9} spellCheck={false} placeholder={EXAMPLE} value={text} onChange={(event) => { setText(event.target.value); posting.reset(); }} />
      </label>
      {posting.error !== null && <Refusal error={posting.error} />}
      {posting.data && <p role="status" className="verdict good">✔ {plain(posting.data.id)} {posting.data.is_new ? `${posting.data.dry_run ? "would be accepted, nothing is stored" : "is requested"}: ${posting.data.blocks.length} block${posting.data.blocks.length === 1 ? "" : "s"}` : "was requested already, with the same content"}.</p>}
      {posting.data && <Findings findings={posting.data.findings} />}
      <div className="request-buttons">
        {text === "" && <Button look="quiet" onClick={() => setText(EXAMPLE)}>Insert the example</Button>}
        <Button onClick={onClose}>Close</Button>
        <Button disabled={posting.isPending || text.trim() === ""} onClick={() => posting.mutate(true)}>Check</Button>
        <Button type="submit" look="primary" disabled={posting.isPending || text.trim() === ""}>{posting.isPending ? "Checking …" : "Post"}</Button>
      </div>
    </form>
  );
}
