/** A run of a registered workflow: what it is given, checked first, then asked for. */
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState, type Dispatch, type SetStateAction, type SyntheticEvent } from "react";
import { Problem } from "../../api/http";
import { beginRun, checkRequest, type Given, type Parameter, type WorkflowDocument } from "../../api/registry";
import { useDeed } from "../../ui/deed";
import { Button } from "../../ui/parts";
import { plain } from "../../ui/plain";
import { say } from "../../ui/toasts";
import { Findings, Refusal } from "./Findings";
import { filled, kindOf, linesOf, textOf, valueOf } from "./parameters";
import { NO_OPTIONS, optionsOf, pointsOf, wrongOption } from "./runOptions";
import { StartOptions } from "./StartOptions";
import { useRangePreview } from "./useRangePreview";

/** `onPreview` is told what the graph would be drawn with. */
export function RequestForm({ workflow, onPreview }: { workflow: WorkflowDocument; onPreview: Dispatch<SetStateAction<Given>> }) {
  const { name, version, parameters, kind } = workflow;
  const [texts, setTexts] = useState<Record<string, string>>({});
  const [lines, setLines] = useState("");
  const [options, setOptions] = useState(NO_OPTIONS);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const takesLines = kind === "flow.cylc" && parameters.length === 0;
  const fields = filled(parameters, texts);
  const more = linesOf(takesLines ? lines : "");
  const values = { ...fields.values, ...more.values };
  const wrong = [...fields.wrong, ...more.wrong, ...(wrongOption("priority", options) === "" ? [] : ["priority"])];
  const preview = useRangePreview(workflow, { parameters: wrong.length > 0 ? {} : values, points: kind === "sip" ? null : pointsOf(options) }, onPreview);
  const checking = useDeed({ mutationFn: () => checkRequest(name, version, values) });
  const beginning = useDeed({
    mutationFn: async () => {
      const verdict = await checking.mutateAsync();
      if (!verdict.runnable) return null;
      return beginRun({ workflow: name, version, parameters: values, options: optionsOf(options) });
    },
    onSuccess: (run) => {
      if (run === null) return;
      say(`${run.name} begins`);
      void queries.invalidateQueries({ queryKey: ["runs"] });
      void navigate({ to: "/runs/$run", params: { run: run.name } });
    },
  });
  const fill = (one: string, text: string) => {
    setTexts({ ...texts, [one]: text });
    checking.reset();
    beginning.reset();
  };
  const check = () => {
    beginning.reset();
    checking.mutate(undefined, { onSuccess: () => onPreview((old) => ({ ...old, parameters: values })) });
  };
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    beginning.mutate();
  };
  const busy = checking.isPending || beginning.isPending;
  // The server checks parameters for the one, points for the other.
  const canRun = checking.data?.runnable === true && preview.error === null;
  return (
    <form className="request-form card" onSubmit={submit} aria-label="Request a run">
      <h2>Request a run</h2>
      {parameters.map((one) => <Field key={one.name} parameter={one} text={texts[one.name] ?? ""} wrong={wrong.includes(one.name)} onText={(text) => fill(one.name, text)} />)}
      {takesLines && (
        <label className="field">
          <span>Template variables</span>
          <textarea className="input" rows={3} placeholder={'NAME = value\nSITES = ["low", "mid"]'} value={lines} onChange={(event) => { setLines(event.target.value); checking.reset(); }} />
          <small className={more.wrong.length > 0 ? "wrong" : "muted"}>{more.wrong.length > 0 ? `Expected NAME = value, got: ${plain(more.wrong[0] ?? "")}` : "For workflows with templates: one variable per line. Values are JSON or text."}</small>
        </label>
      )}
      <StartOptions texts={options} hasPoints={kind !== "sip"} refused={[beginning.error, preview.error].find((error) => error instanceof Problem) ?? null} range={preview.range} onChange={(part) => setOptions({ ...options, ...part })} />
      {preview.error !== null && beginning.error === null && checking.error === null && <Refusal error={preview.error} />}
      {checking.error !== null && <Refusal error={checking.error} />}
      {beginning.error !== null && beginning.error !== checking.error && <Refusal error={beginning.error} />}
      {checking.data && !preview.isPending && (
        <div role="status">
          <p className={canRun ? "verdict good" : "verdict bad"}>{canRun ? "✔ It can run with these values." : "✖ It cannot run with these values:"}</p>
          <Findings findings={checking.data.findings} />
        </div>
      )}
      <div className="request-buttons">
        {fields.missing.length > 0 && <span className="muted">Still needed: {fields.missing.join(", ")}</span>}
        <Button disabled={busy || wrong.length > 0} onClick={check}>{checking.isPending && !beginning.isPending ? "Checking …" : "Check"}</Button>
        <Button type="submit" look="primary" disabled={busy || wrong.length > 0 || fields.missing.length > 0}>{beginning.isPending ? "Requesting …" : "Run"}</Button>
      </div>
    </form>
  );
}

function Field({ parameter, text, wrong, onText }: { parameter: Parameter; text: string; wrong: boolean; onText: (text: string) => void }) {
  const { name, required, stages, provided_by } = parameter;
  const has = "default" in parameter;
  const read = text.trim() === "" ? null : valueOf(text);
  const says = [
    wrong ? "This begins like JSON, but is not valid JSON." : read !== null ? `read as ${kindOf(read.value)}` : has ? "empty: the default" : "",
    stages.length > 0 ? `for ${stages.join(", ")}` : "",
    provided_by.length > 0 ? `given by ${provided_by.join(", ")}` : "",
  ].filter(Boolean).join(" · ");
  return (
    <label className="field">
      <span><code>{plain(name)}</code>{required && <b className="required" title="Required"> required</b>}</span>
      <input className="input mono" value={text} required={required} aria-invalid={wrong} placeholder={has ? textOf(parameter.default) : ""} onChange={(event) => onText(event.target.value)} />
      <small className={wrong ? "wrong" : "muted"}>{plain(says)}</small>
    </label>
  );
}
