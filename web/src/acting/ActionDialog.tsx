/** What a command would do, and the button that does it. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { currentLive } from "../api/runLive";
import { isOfStages } from "../api/shown";
import type { Action } from "../api/types";
import { withKey } from "../shell/keys";
import { useDeed } from "../ui/deed";
import { Dialog, onControlEnter } from "../ui/Dialog";
import { Button, Failure, Loading } from "../ui/parts";
import { say } from "../ui/toasts";
import { submitsOf, tellOutcome } from "./outcome";
import { Bounds, isReflow } from "./Bounds";
import { Consequences } from "./Consequences";
import { useGiving, useTried } from "./tried";
import { actionText, saysOf, verbOf } from "./verbs";
import "./acting.css";

interface Props {
  run: string;
  action: Action;
  docked: boolean;
  onChange: (action: Action) => void;
  onClose: () => void;
  onDone: () => void;
}

export function ActionDialog({ run, action, docked, onChange, onClose, onDone }: Props) {
  const verb = verbOf(action.verb);
  const queries = useQueryClient();
  const tried = useTried(run, action);
  const giving = useDeed({
    mutationFn: useGiving(run, action, tried.data),
    onSuccess: ({ answer }) => {
      if (answer.kept === true) say(`${actionText(action)}: stored, but not carried out yet. No scheduler drives this run, which is ${String(answer.status)}. To continue the run: ${String(answer.next)}`);
      else tellOutcome(action, answer, before.current);
      void queries.invalidateQueries({ queryKey: ["run", run] });
      void queries.invalidateQueries({ queryKey: ["runs"] });
      onDone();
      onClose();
    },
  });
  const before = useRef(submitsOf(action));
  useEffect(() => {
    before.current = submitsOf(action);
  }, [action]);
  const ended = endedRun(run);
  const waits = giving.isPending || tried.isLoading || tried.error !== null;
  const Frame = docked ? Docked : Dialog;
  const give = () => { if (!waits) giving.mutate(); };
  return (
    <Frame title={actionText(action)} onClose={onClose} onConfirm={give}>
      <h2>{actionText(action)}</h2>
      <p className="muted">{saysOf(action)} <span className="faint">Run {run}.</span></p>
      <Choices action={action} docked={docked} onChange={onChange} />
      {ended !== null && action.verb !== "run" && <p><b>Reopens the run</b>, which is {ended}.</p>}
      {tried.isLoading && <Loading what="what would happen" />}
      {tried.error !== null && <Failure error={tried.error} />}
      {tried.data && <Consequences tried={tried.data} />}
      {giving.error !== null && <Failure error={giving.error} />}
      <div className="dialog-foot">
        <Button onClick={onClose}>Cancel</Button>
        <Button look={verb.danger ? "danger" : "primary"} {...(verb.danger || hasChoices(action) ? {} : { "data-focus": true })} aria-disabled={waits} aria-keyshortcuts="Control+Enter" title={withKey("", "confirm")} onClick={give}>
          {giving.isPending ? "Asking the scheduler …" : actionText(action)}
        </Button>
      </div>
    </Frame>
  );
}

/** How the run on the screen has ended; null: it has not, or another one is meant. */
function endedRun(name: string): string | null {
  const run = currentLive()?.snapshot().run;
  return run?.name === name && (run.status === "completed" || run.status === "stopped") ? run.status : null;
}

/** Beside the drawing instead of over it: what would happen is seen, and can be clicked. */
function Docked({ title, onClose, onConfirm, children }: { title: string; onClose: () => void; onConfirm: () => void; children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    box.current?.focus();
    const close = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      onClose();
    };
    window.addEventListener("keydown", close, { capture: true });
    return () => {
      window.removeEventListener("keydown", close, { capture: true });
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []); // eslint-disable-line react-hooks/exhaustive-deps -- once, while it stands there
  return <div ref={box} className="docked dialog-body" role="dialog" aria-label={title} tabIndex={-1} onKeyDown={onControlEnter(onConfirm)}>{children}</div>;
}

/** Before these the focus begins, not at the button that does it. */
const hasChoices = ({ verb, prerequisites }: Action): boolean => verb === "trigger" || verb === "stop" || (verb === "set" && prerequisites === undefined);

/** What else can be said with this verb. */
function Choices({ action, docked, onChange }: { action: Action; docked: boolean; onChange: (action: Action) => void }) {
  if (action.verb === "trigger") {
    return (
      <>
        <FlowChoice action={action} onChange={onChange} />
        {isReflow(action) && !isOfStages() && <Bounds action={action} docked={docked} onChange={onChange} />}
      </>
    );
  }
  if (action.verb === "set") {
    return (
      <>
        {action.prerequisites === undefined && <OutputChoice action={action} onChange={onChange} />}
        <KnownFlow action={action} onChange={onChange} />
      </>
    );
  }
  if (action.verb === "stop" && action.at_point === undefined && action.after_task === undefined) {
    return (
      <fieldset className="choices">
        <legend>How</legend>
        {([["clean", "when the jobs have ended"], ["now", "now; running jobs continue"], ["kill", "now, and end the jobs"]] as const).map(([mode, says]) => (
          <label key={mode}><input type="radio" name="mode" checked={(action.mode ?? "clean") === mode} onChange={() => onChange({ ...action, mode })} /> {says}</label>
        ))}
      </fieldset>
    );
  }
  return null;
}

function OutputChoice({ action, onChange }: { action: Action; onChange: (action: Action) => void }) {
  const [text, setText] = useState("");
  const take = () => {
    const { outputs: _, ...rest } = action;
    const outputs = text.split(/[\s,]+/).filter(Boolean);
    onChange(outputs.length > 0 ? { ...rest, outputs } : rest);
  };
  return (
    <label className="choices">
      <span className="muted">Outputs, separated by commas. If empty: the outputs that complete the task</span>
      <input className="input" placeholder="succeeded" value={text} onChange={(event) => setText(event.target.value)} onBlur={take} onKeyDown={(event) => { if (event.key === "Enter") take(); }} />
    </label>
  );
}

/** Those that tasks of the run on the screen belong to; the first alone is no choice. */
function flowsOfRun(asked = ""): number[] {
  if (isOfStages()) return [];
  const wanted = /^\d+$/.test(asked) ? [Number(asked)] : [];
  const flows = new Set(currentLive()?.snapshot().rows.flatMap((row) => row.flows));
  return flows.size > 1 ? [...flows].sort((a, b) => a - b) : wanted;
}

/** Into a flow that is under way, as for a task that waits for something outside of its flow. */
function KnownFlow({ action, onChange }: { action: Action; onChange: (action: Action) => void }) {
  const flows = flowsOfRun();
  if (flows.length === 0) return null;
  return (
    <label className="choices">
      <span className="muted">Into which flow</span>
      <select value={action.flow ?? ""} onChange={(event) => onChange(inFlow(action, event.target.value))}>
        <option value="">as usual</option>
        {flows.map((flow) => <option key={flow} value={flow}>flow {flow}</option>)}
      </select>
    </label>
  );
}

function FlowChoice({ action, onChange }: { action: Action; onChange: (action: Action) => void }) {
  return (
    <fieldset className="choices">
      <legend>What follows</legend>
      {[["", isOfStages() ? "as usual: the stages that wait for it follow; if it has succeeded already, only this stage runs" : "as usual: later tasks follow in its flows; if it has succeeded already, only this task runs"], ["new", `everything after it runs again${isOfStages() ? "" : " (a new flow)"}`], ["none", `nothing: only this ${isOfStages() ? "stage" : "task"} runs`], ...flowsOfRun(action.flow).map((one) => [String(one), `everything after it runs in flow ${one}`])].map(([flow = "", says]) => (
        <label key={flow}><input type="radio" name="flow" checked={(action.flow ?? "") === flow} onChange={() => onChange(inFlow(action, flow))} /> {says}</label>
      ))}
    </fieldset>
  );
}

/** Bounds are those of a new flow. */
function inFlow(action: Action, flow: string): Action {
  const { until: _, until_tasks: __, ...rest } = action;
  return { ...rest, flow };
}
