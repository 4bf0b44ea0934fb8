/** Where a bundle is dropped, and every finding about it. */
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import type { Registered } from "../../api/registry";
import { useDeed } from "../../ui/deed";
import { Button } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { registerBundle } from "./bundles";
import { Findings, Refusal } from "./Findings";

export function Intake() {
  const [files, setFiles] = useState<File[]>([]);
  const [called, setCalled] = useState({ name: "", version: "" });
  const [over, setOver] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const queries = useQueryClient();
  const sending = useDeed({
    mutationFn: (given: File[]) => registerBundle(given, called.name.trim(), called.version.trim()),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["workflows"] }),
  });
  const take = (given: FileList | null) => {
    const found = [...(given ?? [])];
    setFiles(found);
    sending.mutate(found);
  };
  const dropped = useEffectEvent(take);
  // Anywhere on the page: else a browser would leave it, and open the file instead.
  useEffect(() => {
    const drag = (event: DragEvent) => { event.preventDefault(); setOver(true); };
    const leave = (event: DragEvent) => { if (event.relatedTarget === null) setOver(false); };
    const drop = (event: DragEvent) => { event.preventDefault(); setOver(false); dropped(event.dataTransfer?.files ?? null); };
    document.addEventListener("dragover", drag);
    document.addEventListener("dragleave", leave);
    document.addEventListener("drop", drop);
    return () => {
      document.removeEventListener("dragover", drag);
      document.removeEventListener("dragleave", leave);
      document.removeEventListener("drop", drop);
    };
  }, []);
  return (
    <section className={over ? "intake card over" : "intake card"} aria-label="Register a bundle">
      <div className="intake-ask">
        <p><b>Drop a bundle here</b> <span className="muted">– zip, tar or tar.gz of a folder with its definition; all of it is registered, or nothing.</span></p>
        <input ref={picker} type="file" multiple hidden data-testid="bundle" onChange={(event) => { take(event.target.files); event.target.value = ""; }} />
        <Button onClick={() => picker.current?.click()}>Choose a file …</Button>
      </div>
      {files.length > 0 && (
        <form className="intake-name" onSubmit={(event) => { event.preventDefault(); sending.mutate(files); }}>
          <span className="muted">{plain(files.map((one) => one.name).join(", "))}</span>
          {sending.error !== null && (
            <>
              <label>name <input className="input" size={14} value={called.name} placeholder="as in the definition" onChange={(event) => setCalled({ ...called, name: event.target.value })} /></label>
              <label>version <input className="input" size={8} value={called.version} placeholder="as defined" onChange={(event) => setCalled({ ...called, version: event.target.value })} /></label>
              <Button type="submit" disabled={sending.isPending}>Send again</Button>
            </>
          )}
          {sending.isPending && <span role="status">Reading and checking the definition …</span>}
        </form>
      )}
      {sending.error !== null && <Refusal error={sending.error} />}
      {sending.data && <Made made={sending.data} />}
    </section>
  );
}

function Made({ made }: { made: Registered }) {
  return (
    <div className="intake-made" role="status">
      {made.workflows.map(({ name, version, is_new, runnable, findings }) => (
        <div key={`${name}/${version}`}>
          <p>✔ <Link to="/workflows/$workflow/$version" params={{ workflow: name, version }}>{plain(`${name}/${version}`)}</Link> {is_new ? "is registered" : "was registered already, with the same content"}{runnable ? "" : "; it cannot run as it is"}.</p>
          <Findings findings={findings} />
        </div>
      ))}
    </div>
  );
}
