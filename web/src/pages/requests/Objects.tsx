/** Buffer objects that are there: stages wait for some of them. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { objectsQuery, postObject, removeObject } from "../../api/blocks";
import { useMay } from "../../api/session";
import { useDeed } from "../../ui/deed";
import { Confirm } from "../../ui/Confirm";
import { Button, Failure } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { Ago } from "../../ui/time";
import { say } from "../../ui/toasts";
import { valueOf } from "../workflows/parameters";

export function Objects() {
  const { data: objects, error } = useQuery(objectsQuery);
  const [removing, setRemoving] = useState("");
  const [submits, operates] = [useMay("submit"), useMay("operate")];
  const mayChange = submits || operates;
  return (
    <section className="card part" aria-label="Buffer objects">
      <h2>Buffer objects</h2>
      {error !== null && <Failure error={error} />}
      {mayChange && <PostObject />}
      {objects?.length === 0 && <p className="muted">There are no buffer objects. A stage that waits for an object begins when the object is posted.</p>}
      {objects && objects.length > 0 && (
        <div className="scroll-x">
          <table className="plain-table">
            <thead><tr><th>Name</th><th>Facts</th><th>Posted</th><th /></tr></thead>
            <tbody>
              {objects.map((one) => (
                <tr key={one.name}>
                  <td><code>{plain(one.name)}</code></td>
                  <td>{Object.keys(one.facts).length > 0 && <code>{plain(JSON.stringify(one.facts))}</code>}</td>
                  <td className="muted nowrap">{plain(one.posted_by)}, <Ago at={one.posted_at} /></td>
                  <td className="row-buttons">{mayChange && <Button look="risky" aria-label={`Remove ${one.name}`} onClick={() => setRemoving(one.name)}>Remove …</Button>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {removing !== "" && (
        <Confirm title={`Remove ${removing}`} button="Remove it" danger stale={["objects"]} act={() => removeObject(removing)} onClose={() => setRemoving("")}>
          <p>Stages that have already found the object are not affected. Stages that begin to wait for it later wait until it is posted again.</p>
        </Confirm>
      )}
    </section>
  );
}

function PostObject() {
  const [name, setName] = useState("");
  const [facts, setFacts] = useState("");
  const queries = useQueryClient();
  const read = facts.trim() === "" ? {} : valueOf(facts)?.value;
  const isObject = typeof read === "object" && read !== null && !Array.isArray(read);
  const posting = useDeed({
    mutationFn: () => postObject(name.trim(), read as Record<string, unknown>),
    onSuccess: () => {
      say(`${name.trim()} is posted`);
      setName("");
      setFacts("");
      return queries.invalidateQueries({ queryKey: ["objects"] });
    },
  });
  return (
    <form className="post-object" onSubmit={(event) => { event.preventDefault(); posting.mutate(); }}>
      <input className="input" placeholder="Name of an object" aria-label="Name of an object" value={name} onChange={(event) => setName(event.target.value)} />
      <input className="input mono" placeholder={'{"bytes": 1024}'} aria-label="Facts about the object, as JSON" aria-invalid={!isObject} value={facts} onChange={(event) => setFacts(event.target.value)} />
      <Button type="submit" disabled={name.trim() === "" || !isObject || posting.isPending}>Post</Button>
      {!isObject && <small className="wrong">Write the facts as a JSON object.</small>}
      {posting.error !== null && <Failure error={posting.error} />}
    </form>
  );
}
