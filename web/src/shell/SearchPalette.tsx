/** Type a few letters, press Enter: a page, a run, a workflow, a task of the run that is open. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useDeferredValue, useEffect, useRef, useState, type KeyboardEvent } from "react";
import { runsQuery } from "../api/queries";
import { workflowsQuery } from "../api/registry";
import { currentLive } from "../api/runLive";
import { shownId, taskWord } from "../api/shown";
import { Dialog } from "../ui/Dialog";
import type { Kind } from "../ui/palette";
import { StateIcon } from "../ui/StateIcon";
import { toggleTheme } from "../ui/theme";
import { usePlaces } from "./places";

interface Found {
  key: string;
  title: string;
  kind: string;
  state?: [string, Kind];
  go: () => void;
}

const SHOWN_MAX = 40;

/** Every word must be in it; what begins with the first comes before. */
export function rank(title: string, words: readonly string[]): number {
  const text = title.toLowerCase();
  if (!words.every((word) => text.includes(word))) return -1;
  const [head] = words;
  return head === undefined ? 0 : text.startsWith(head) ? 2 : 1;
}

/** The best first. */
export function matching<One extends { title: string }>(all: readonly One[], text: string): One[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return all
    .map((one) => ({ one, order: rank(one.title, words) }))
    .filter(({ order }) => order >= 0)
    .sort((a, b) => b.order - a.order)
    .slice(0, SHOWN_MAX)
    .map(({ one }) => one);
}

export function SearchPalette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const isChosen = useRef(false); // Enter came before what it is for
  const { everything, isLoading } = useEverything();
  const shown = matching(everything, useDeferredValue(text));
  const choose = (found: Found | undefined) => {
    if (found === undefined) return;
    onClose();
    found.go();
  };
  useEffect(() => {
    if (isChosen.current && !isLoading) {
      isChosen.current = false;
      choose(matching(everything, text)[at]);
    }
  });
  const keys = (event: KeyboardEvent) => {
    isChosen.current = false;
    if (event.key === "ArrowDown") setAt(Math.min(at + 1, shown.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
    else if (event.key === "Enter") {
      const found = matching(everything, (event.target as HTMLInputElement).value)[at]; // what is shown may lag behind who types fast
      isChosen.current = found === undefined && isLoading;
      choose(found);
    }
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Search" onClose={onClose} className="palette">
      <input
        className="input" data-focus placeholder="A page, a run, a workflow, a task of the run that is open …" value={text} role="combobox" aria-expanded aria-controls="palette-list"
        aria-activedescendant={`palette-${at}`} aria-label="Search"
        onChange={(event) => { setText(event.target.value); setAt(0); }} onKeyDown={keys}
      />
      <ul id="palette-list" role="listbox" aria-label="Found">
        {shown.map((one, place) => (
          <li
            key={one.key} id={`palette-${place}`} role="option" aria-selected={place === at}
            ref={(line) => { if (place === at) line?.scrollIntoView({ block: "nearest" }); }}
            onClick={() => choose(one)} onMouseMove={() => setAt(place)}
          >
            {one.state ? <StateIcon state={one.state[0]} kind={one.state[1]} /> : <span className="faint">→</span>}
            <span className="title">{one.title}</span><span className="faint">{one.kind}</span>
          </li>
        ))}
        {shown.length === 0 && <li className="faint">{isLoading ? "Loading runs and workflows …" : "Nothing is called like that."}</li>}
      </ul>
    </Dialog>
  );
}

function useEverything(): { everything: Found[]; isLoading: boolean } {
  const navigate = useNavigate();
  const places = usePlaces();
  const { data: runs = [], isLoading: runsAreLoading } = useQuery(runsQuery);
  const { data: workflows = [], isLoading: workflowsAreLoading } = useQuery(workflowsQuery);
  const rows = currentLive()?.snapshot().rows ?? [];
  const select = (id: string) => void navigate({ to: ".", search: (old) => ({ ...old, select: id }) });
  const everything = [
    ...rows.map((row): Found => ({
      key: `task ${row.id}`, title: shownId(row.id), kind: taskWord(), state: [row.state, "tasks"], go: () => select(row.id),
    })),
    ...places.map((place): Found => ({
      key: place.to, title: place.title, kind: "page", go: () => void navigate({ to: place.to }),
    })),
    ...runs.map((one): Found => ({
      key: `run ${one.name}`, title: one.name, kind: "run", state: [one.status, "runs"],
      go: () => void navigate({ to: "/runs/$run", params: { run: one.name } }),
    })),
    ...[...new Set(workflows.map((one) => one.name))].map((name): Found => ({
      key: `workflow ${name}`, title: name, kind: "workflow", go: () => void navigate({ to: "/workflows/$workflow", params: { workflow: name } }),
    })),
    { key: "documentation", title: "Documentation", kind: "page", go: () => window.location.assign("/docs/") },
    { key: "theme", title: "Dark or light", kind: "setting", go: toggleTheme },
  ];
  return { everything, isLoading: runsAreLoading || workflowsAreLoading };
}
