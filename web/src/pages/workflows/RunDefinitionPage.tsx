/** What a run runs: its definition as it was read, and the files that were kept with it. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { runDefinitionQuery, type KeptDefinition } from "../../api/registry";
import { Empty, Failure, Loading } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { useAddress } from "../useAddress";
import { DefinitionFiles } from "./DefinitionFiles";
import { bytesOfBase64 } from "./definitionText";
import "./workflows.css";

const RENDERED = ""; // the path of what the run reads, after its templates

export function RunDefinitionPage() {
  const [search] = useAddress();
  const run = search.run ?? "";
  const { data, error, refetch } = useQuery({ ...runDefinitionQuery(run), enabled: run !== "" });
  if (run === "") return <Empty page title="No run is named">Open a run, and from there its definition.</Empty>;
  if (error !== null) return <Failure error={error} retry={() => void refetch()} />;
  if (data === undefined) return <Loading what={`the definition of ${run}`} />;
  return <Shown run={run} kept={data} />;
}

function Shown({ run, kept }: { run: string; kept: KeptDefinition }) {
  const rendered = kept.kind === "sip" ? [] : [{ path: RENDERED, size: kept.text.length, executable: false }];
  const files = kept.files.map(({ path, content, executable }) => ({ path, executable, size: Math.floor((content.length * 3) / 4) - (content.endsWith("==") ? 2 : content.endsWith("=") ? 1 : 0) }));
  const bytesOf = (path: string) => (path === RENDERED ? new TextEncoder().encode(kept.text) : bytesOfBase64(kept.files.find((one) => one.path === path)?.content ?? ""));
  return (
    <div className="plain-page">
      <div className="page-head">
        <h1>Definition of <Link to="/runs/$run" params={{ run }}>{plain(run)}</Link></h1>
        <span className="muted">{kept.kind} · {kept.digest.slice(0, 12)}</span>
      </div>
      <section className="card part" aria-label="Definition">
        <DefinitionFiles
          files={[...rendered, ...files]} findings={[]} titleOf={(path) => (path === RENDERED ? "as the run reads it" : path)}
          contentOf={(path) => ({ key: ["definition", run, kept.digest, path], read: () => Promise.resolve(bytesOf(path)) })}
        />
      </section>
    </div>
  );
}
