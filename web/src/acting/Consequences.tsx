/** A dry run in words: what changes at once, what would then run, what would wait. */
import { shownId } from "../api/shown";
import type { DryRun } from "../api/types";
import { FileDiffs } from "../ui/FileDiffs";
import { plain } from "../ui/plain";

const SHOWN_MAX = 12;

function Some({ title, lines }: { title: string; lines: readonly { key: string; text: string; note?: string }[] }) {
  if (lines.length === 0) return null;
  return (
    <section>
      <h3>{title} <span className="faint">{lines.length}</span></h3>
      <ul>
        {lines.slice(0, SHOWN_MAX).map((line) => (
          <li key={line.key}><code>{line.text}</code>{line.note && <span className="muted"> {plain(line.note)}</span>}</li>
        ))}
        {lines.length > SHOWN_MAX && <li className="faint">and {lines.length - SHOWN_MAX} more</li>}
      </ul>
    </section>
  );
}

export function Consequences({ tried }: { tried: DryRun }) {
  const { status } = tried;
  const { notices } = tried;
  const nothing = tried.changes.length + tried.runs.length + tried.killed.length + tried.polled.length === 0 && status.before === status.after;
  return (
    <div className="consequences" tabIndex={0} role="group" aria-label="What would happen">
      {status.before !== status.after && <p>The run, now {status.before}, would be <b>{status.after}</b>.</p>}
      {nothing && <p className="muted">Nothing would change at once.</p>}
      {tried.diff && (
        <section aria-label="Definition">
          <h3>Definition</h3>
          {tried.diff.length === 0 ? <p className="muted">The run has this definition already.</p> : <FileDiffs files={tried.diff} />}
        </section>
      )}
      <Some title="Changes at once" lines={tried.changes.map((one) => ({ key: one.id, text: shownId(one.id), note: `${one.before} → ${one.after}${one.made.length ? `; outputs: ${one.made.join(", ")}` : ""}` }))} />
      <Some title="Jobs that would be ended" lines={tried.killed.map((id) => ({ key: id, text: shownId(id) }))} />
      <Some title="Jobs whose state would be checked" lines={tried.polled.map((id) => ({ key: id, text: shownId(id) }))} />
      <Some title="Would run, if each job succeeds" lines={tried.runs.map((one) => ({ key: `${one.id} ${one.submit}`, text: shownId(one.id), note: one.triggered ? "at once" : one.after.length ? `after ${one.after.map((id) => shownId(id)).join(", ")}` : "" }))} />
      <Some title="Would still wait" lines={tried.waits.map((one) => ({ key: one.id, text: shownId(one.id), note: one.reasons[0]?.text ?? "" }))} />
      {notices.length > 0 && <p className="muted notices">Messages of the run: {plain(notices.join(" · "))}</p>}
      {tried.cut && <p className="faint">There is more; only the beginning is shown.</p>}
    </div>
  );
}
