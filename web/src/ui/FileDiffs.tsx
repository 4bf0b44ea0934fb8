/** The lines in which files of two definitions differ. */
import type { FileDiff } from "../api/generated/workflows";
import { plain } from "./plain";
import "./diff.css";

const SIGNS: Record<string, string> = { same: " ", added: "+", removed: "-" };
/** The path of what a run reads, after its templates. */
export const RENDERED = "";
export const pathText = (path: string): string => (path === RENDERED ? "definition with templates expanded" : path);

export function FileDiffs({ files }: { files: readonly FileDiff[] }) {
  return files.map((file) => (
    <section key={file.path} aria-label={pathText(file.path)}>
      <h4><code>{plain(pathText(file.path))}</code> <span className="muted">{file.change}</span></h4>
      {file.executable !== undefined && <p className="muted">The file is {file.executable ? "now" : "no longer"} executable.</p>}
      {file.hunks === null && <p className="muted">The file is not text, or is too long to compare.</p>}
      {file.hunks?.map((hunk, place) => (
        <ol key={place} className="diff-lines">
          {hunk.map((line, at) => (
            <li key={at} className={line.kind}><span className="diff-number">{line.old ?? ""}</span><span className="diff-number">{line.new ?? ""}</span><code>{SIGNS[line.kind] ?? " "}{plain(line.text)}</code></li>
          ))}
        </ol>
      ))}
    </section>
  ));
}
