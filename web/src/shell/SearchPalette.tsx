/** Type a few letters, press Enter: a run, a task, a queue, a workflow, a page; or a command, of which Tab completes the words. */
import { useEffect, useRef, useState, type KeyboardEvent } from "react";
import { useMay } from "../api/session";
import { Dialog } from "../ui/Dialog";
import { StateIcon } from "../ui/StateIcon";
import type { Found } from "./found";
import { useFound } from "./useFound";

export function SearchPalette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const isChosen = useRef(false); // Enter came before what it is for
  const may = useMay("operate");
  const { found, isLoading, says } = useFound(text);
  const type = (next: string) => { setText(next); setAt(0); };
  const choose = (one: Found | undefined) => {
    if (one === undefined) return;
    if (one.complete !== undefined) {
      type(one.complete);
      return;
    }
    onClose();
    one.go?.();
  };
  useEffect(() => {
    if (isChosen.current && (!isLoading || found[at] !== undefined)) {
      isChosen.current = false;
      choose(found[at]);
    }
  });
  const keys = (event: KeyboardEvent) => {
    isChosen.current = false;
    const completes = found[at]?.complete ?? found.find((one) => one.complete !== undefined)?.complete;
    if (event.key === "ArrowDown") setAt(Math.min(at + 1, found.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
    else if (event.key === "Tab") type(completes ?? text); // there is nothing else in this window
    else if (event.key === "Enter") {
      isChosen.current = found[at] === undefined && isLoading;
      choose(found[at]);
    } else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Search" onClose={onClose} className="palette">
      <input
        className="input" data-focus placeholder={may ? "A run, a task, a queue, a page …; or: trigger failed in RUN" : "A run, a task, a queue, a page …"} value={text} role="combobox" aria-expanded aria-controls="palette-list"
        aria-activedescendant={`palette-${at}`} aria-label="Search" autoComplete="off" spellCheck={false}
        onChange={(event) => type(event.target.value)} onKeyDown={keys}
      />
      <ul id="palette-list" role="listbox" aria-label="Found">
        {(isLoading ? found.length === 0 : says !== "") && <li role="option" aria-disabled aria-selected={false} className="faint">{isLoading ? "Loading runs, tasks and workflows …" : says}</li>}
        {found.map((one, place) => (
          <li
            key={one.key} id={`palette-${place}`} role="option" aria-selected={place === at}
            ref={(line) => { if (place === at) line?.scrollIntoView({ block: "nearest" }); }}
            onClick={() => choose(one)} onMouseMove={() => setAt(place)}
          >
            {one.state ? <StateIcon state={one.state[0]} kind={one.state[1]} /> : <span className="faint" aria-hidden>{one.complete === undefined ? "→" : "…"}</span>}
            <span className="title">{one.title}</span><span className="faint">{one.kind}</span>
          </li>
        ))}
              </ul>
    </Dialog>
  );
}
