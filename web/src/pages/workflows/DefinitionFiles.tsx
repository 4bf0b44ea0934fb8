/** The files of a definition, one of them open; which one, and which line, is in the address. */
import { useQuery } from "@tanstack/react-query";
import type { Finding } from "../../api/http";
import type { WorkflowDocument } from "../../api/registry";
import { RENDERED } from "../../ui/FileDiffs";
import { Failure, Loading } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { bytesText, countText } from "../../ui/quantities";
import { useAddress } from "../useAddress";
import { DefinitionText } from "./DefinitionText";
import { isFile, mainFile, SHOWN_BYTES_MAX, textOfBytes } from "./definitionText";

type File = WorkflowDocument["files"][number];
interface FilesProps {
  files: readonly File[];
  findings: readonly Finding[];
  /** By which key the content of a file is kept, and how it is read. */
  contentOf: (path: string) => { key: readonly string[]; read: (signal: AbortSignal) => Promise<Uint8Array> };
  /** What a file is called where its path says nothing. */
  titleOf?: (path: string) => string;
}

const UNNAMED = "//"; // in the address, for the text that has no path; no file is called so

/** Which file is open, and which line is asked for. */
export function useDefinitionPlace(files: readonly File[]) {
  const [search, change] = useAddress();
  const named = search.file === UNNAMED ? RENDERED : (search.file ?? null);
  const path = files.find((one) => isFile(named, one.path))?.path ?? mainFile(files.map((one) => one.path));
  const line = /^\d{1,7}$/.test(search.line ?? "") ? Number(search.line) : null;
  const open = (file: string, at?: number) => change({ file: file === RENDERED ? UNNAMED : file, line: at === undefined ? "" : String(at) });
  return { path, line, open };
}

export function DefinitionFiles({ files, findings, contentOf, titleOf = (path) => path }: FilesProps) {
  const { path, line, open } = useDefinitionPlace(files);
  const file = files.find((one) => one.path === path);
  if (file === undefined) return <p className="muted">The definition has no files.</p>;
  const count = (of: string) => findings.filter((one) => isFile(one.file, of)).length;
  return (
    <div className="definition-files">
      <ul className="definition-list" aria-label="Files of the definition">
        {files.map((one) => (
          <li key={one.path}>
            <button type="button" className="link" aria-pressed={one.path === path} onClick={() => open(one.path)}>{plain(titleOf(one.path))}</button>
            <span className="muted">{one.executable ? "executable · " : ""}{bytesText(one.size)}{count(one.path) > 0 ? ` · ${countText(count(one.path), "finding")}` : ""}</span>
          </li>
        ))}
      </ul>
      {file.size > SHOWN_BYTES_MAX
        ? <p className="muted">{plain(titleOf(path))} has {bytesText(file.size)}: too long to be shown here.</p>
        : <Content key={path} path={path} title={titleOf(path)} findings={findings} line={line} contentOf={contentOf} onLine={(at) => open(path, at)} />}
    </div>
  );
}

function Content({ path, title, findings, line, contentOf, onLine }: { path: string; title: string; findings: readonly Finding[]; line: number | null; contentOf: FilesProps["contentOf"]; onLine: (line: number) => void }) {
  const { key, read } = contentOf(path);
  // What is kept never changes.
  const { data, error, refetch } = useQuery({ queryKey: key, queryFn: ({ signal }) => read(signal), staleTime: Infinity, retry: false });
  if (error !== null) return <Failure error={error} retry={() => void refetch()} />;
  if (data === undefined) return <Loading what={title} />;
  const text = textOfBytes(data);
  if (text === null) return <p className="muted">{plain(title)} is not text.</p>;
  return <DefinitionText path={path} text={text} findings={findings} line={line} onLine={onLine} />;
}
