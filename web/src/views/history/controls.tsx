/** How somebody gets to a moment: by hand, by a time, by a link. */
import { useState } from "react";
import { say } from "../../ui/toasts";

/** What a batch is, for those who have not read the glossary. */
export const BATCH_WORDS = "what the scheduler decided at one moment, because a job began or ended, a command arrived, or a time was reached";

/** Follows the hand at once. */
export function Slider({ batch, last, onHold }: { batch: number; last: number; onHold: (batch: number) => void }) {
  return (
    <label className="history-slider" title={`One step is one batch: ${BATCH_WORDS}`}>
      <input type="range" name="batch" min="0" max={last} value={batch} aria-label="Batch" aria-valuetext={`batch ${batch} of ${last}`} onChange={(event) => onHold(Number(event.target.value))} />
      <span className="nowrap">batch <b>{batch}</b> of {last}</span>
    </label>
  );
}

export function TimeField({ onGo }: { onGo: (at: Date) => void }) {
  const [text, setText] = useState("");
  const time = new Date(text);
  const known = !Number.isNaN(time.getTime());
  return (
    <form className="history-time" onSubmit={(event) => { event.preventDefault(); if (known) onGo(time); }}>
      <input className="input" type="datetime-local" step="1" aria-label="Show the run as it was at" value={text} onChange={(event) => setText(event.target.value)} />
      {known && <button type="submit" className="button">Go there</button>}
    </form>
  );
}

/** The address of this very moment, also where the view follows the present. */
export function addressOf(here: string, batch: number): string {
  const address = new URL(here);
  address.searchParams.set("history.batch", String(batch));
  return address.toString();
}

export function LinkHere({ batch }: { batch: number }) {
  const address = addressOf(window.location.href, batch);
  return (
    <a
      className="history-link" href={address} title="The address of this moment; a click copies it"
      onClick={(event) => {
        // Only pages that came by TLS, or from this machine, may write to the clipboard: elsewhere it is a link.
        if (!window.isSecureContext || event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        navigator.clipboard.writeText(address).then(() => say(`The link to batch ${batch} is copied`), () => window.location.assign(address));
      }}
    >Link</a>
  );
}
