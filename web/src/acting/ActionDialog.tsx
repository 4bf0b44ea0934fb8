/** What a command would do, and the button that does it. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { giveCommand, tryCommand } from "../api/commands";
import type { Action } from "../api/types";
import { Dialog } from "../ui/Dialog";
import { Button, Failure, Loading } from "../ui/parts";
import { say } from "../ui/toasts";
import { Consequences } from "./Consequences";
import { actionText, verbOf } from "./verbs";
import "./acting.css";

// These are about whoever drives the run, not about its tasks: there is nothing to try.
const UNTRIED = ["run", "broadcast", "message"];

export function ActionDialog({ run, action: given, onClose }: { run: string; action: Action; onClose: () => void }) {
  const [action, setAction] = useState(given);
  const verb = verbOf(action.verb);
  const queries = useQueryClient();
  const tried = useQuery({
    queryKey: ["run", run, "dry run", action],
    queryFn: () => tryCommand(run, action),
    enabled: !UNTRIED.includes(action.verb),
    retry: false,
    gcTime: 0,
  });
  const giving = useMutation({
    mutationFn: () => giveCommand(run, action),
    onSuccess: () => {
      say(`${actionText(action)}: done`);
      void queries.invalidateQueries({ queryKey: ["run", run] });
      void queries.invalidateQueries({ queryKey: ["runs"] });
      onClose();
    },
  });
  return (
    <Dialog title={actionText(action)} onClose={onClose}>
      <h2>{actionText(action)}</h2>
      <p className="muted">{verb.says} <span className="faint">Run {run}.</span></p>
      <Choices action={action} onChange={setAction} />
      {tried.isLoading && <Loading what="what would happen" />}
      {tried.error !== null && <Failure error={tried.error} />}
      {tried.data && <Consequences tried={tried.data} />}
      {giving.error !== null && <Failure error={giving.error} />}
      <div className="dialog-foot">
        <Button onClick={onClose}>Leave it</Button>
        <Button look={verb.danger ? "danger" : "primary"} autoFocus disabled={giving.isPending || tried.isLoading || tried.error !== null} onClick={() => giving.mutate()}>
          {giving.isPending ? "Asking the scheduler …" : actionText(action)}
        </Button>
      </div>
    </Dialog>
  );
}

/** What else can be said with this verb. */
function Choices({ action, onChange }: { action: Action; onChange: (action: Action) => void }) {
  if (action.verb === "trigger") return <FlowChoice action={action} onChange={onChange} />;
  if (action.verb === "set" && action.prerequisites === undefined) return <OutputChoice action={action} onChange={onChange} />;
  if (action.verb === "stop") {
    return (
      <fieldset className="choices">
        <legend>How</legend>
        {([["clean", "when the jobs have ended"], ["now", "now; jobs go on by themselves"], ["kill", "now, and end the jobs"]] as const).map(([mode, says]) => (
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
      <span className="muted">Which outputs, with commas; none: those that make it complete</span>
      <input className="input" placeholder="succeeded" value={text} onChange={(event) => setText(event.target.value)} onBlur={take} onKeyDown={(event) => { if (event.key === "Enter") take(); }} />
    </label>
  );
}

function FlowChoice({ action, onChange }: { action: Action; onChange: (action: Action) => void }) {
  return (
    <fieldset className="choices">
      <legend>What follows</legend>
      {([["", "as the run goes on (its flow)"], ["new", "everything behind it again (a new flow)"], ["none", "nothing: only this"]] as const).map(([flow, says]) => (
        <label key={flow}><input type="radio" name="flow" checked={(action.flow ?? "") === flow} onChange={() => onChange({ ...action, flow })} /> {says}</label>
      ))}
    </fieldset>
  );
}
