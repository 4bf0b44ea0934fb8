/** What can be done with the lines that somebody has picked: copy a link to them, find the like in other logs. */
import { useChange } from "../../pages/run/useRunPage";
import { Button } from "../../ui/parts";
import { say } from "../../ui/toasts";
import { piecesOf, PLAIN, textOf } from "./ansi";
import type { LogPlace } from "./follower";
import { likeness } from "./levels";
import type { Picked, Row } from "./rows";

export function PickedLines({ place, rows, picked, clear }: { place: LogPlace; rows: readonly Row[]; picked: Picked; clear: () => void }) {
  const change = useChange();
  const address = window.location.href;
  const what = picked.from === picked.to ? `Line ${picked.from}` : `Lines ${picked.from} to ${picked.to}`;
  const row = rows.find((one) => one.number === picked.from);
  const find = () => {
    const marked = window.getSelection()?.toString().trim() ?? "";
    const isPart = marked !== "" && !marked.includes("\n");
    const text = isPart ? marked : likeness(textOf(piecesOf(row?.text ?? "", row?.start ?? PLAIN).pieces));
    change({ "logs.of": "all", "logs.find": text.slice(0, 500), "logs.match": isPart ? "text" : "", "logs.tasks": "", "logs.lines": "" });
  };
  return (
    <div className="logs-picked" role="group" aria-label="Picked lines">
      <b>{what}</b>
      <a
        className="button plain" href={address} title="The address of these lines; a click copies it"
        onClick={(event) => {
          // Only pages that came by TLS, or from this machine, may write to the clipboard: elsewhere it is a link.
          if (!window.isSecureContext || event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          navigator.clipboard.writeText(address).then(() => say(`The link to ${what.toLowerCase()} is copied`), () => window.location.assign(address));
        }}
      >Copy link</a>
      {row !== undefined && <Button title={place.id === "" ? "Search the logs of all jobs of this run" : "Search the logs of all jobs of this run for lines like this one"} onClick={find}>Find in other tasks</Button>}
      <Button look="quiet" onClick={clear}>Clear selection</Button>
    </div>
  );
}

