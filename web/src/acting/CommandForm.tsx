/** Any command, about tasks that are named by words; what it would do is shown before it is given. */
import { useState, type SubmitEvent } from "react";
import { isOfStages } from "../api/shown";
import type { Action } from "../api/types";
import { Dialog } from "../ui/Dialog";
import { Button } from "../ui/parts";
import { commandOf, FORMS, formsFor, namedAtFirst } from "./forms";

/** `ids`: the tasks it is about, unless others are written. */
export function CommandFormDialog({ ids, onDone, onClose }: { ids: readonly string[]; onDone: (action: Action) => void; onClose: () => void }) {
  const [id, setId] = useState("trigger");
  const [written, setWritten] = useState<Record<string, string>>(() => namedAtFirst(ids));
  const form = FORMS.find((one) => one.id === id) ?? FORMS[0];
  const action = commandOf(form, written);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (action !== null) onDone(action);
  };
  return (
    <Dialog title="Command" onClose={onClose}>
      <h2>Command</h2>
      <form className="command-form" onSubmit={submit}>
        <label>What <select data-focus value={id} onChange={(event) => setId(event.target.value)}>{formsFor(isOfStages()).map((one) => <option key={one.id} value={one.id}>{one.title}</option>)}</select></label>
        <p className="muted">{form.says}</p>
        {form.fields.map((field) => {
          const text = written[field.name] ?? "";
          const put = (value: string) => setWritten({ ...written, [field.name]: value });
          if (field.kind === "tick") return <label key={field.name} className="tick"><input type="checkbox" checked={text !== ""} onChange={(event) => put(event.target.checked ? "yes" : "")} /> {field.label}</label>;
          const common = { className: "input", placeholder: field.example, value: text, required: field.required ?? false, "aria-describedby": "command-help" };
          return (
            <label key={field.name}>{field.label}{" "}
              {field.kind === "lines" ? <textarea rows={3} {...common} onChange={(event) => put(event.target.value)} /> : <input {...common} onChange={(event) => put(event.target.value)} />}
            </label>
          );
        })}
        {form.fields.some((field) => field.name === "ids") && <p id="command-help" className="faint small">As on the command line: <code>{isOfStages() ? "STAGE" : "POINT/NAME"}</code>{isOfStages() ? "" : " or a family"}, with <code>*</code> and <code>?</code>; <code>:failed</code> or another state after it selects only tasks in that state. Separate several patterns with commas.</p>}
        <div className="dialog-foot">
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" disabled={action === null}>Show what would happen</Button>
        </div>
      </form>
    </Dialog>
  );
}
