/** By keys from one run that needs action to the next. */
import { focusOn } from "../../ui/roving";
import { say } from "../../ui/toasts";

/** The next line that needs action: at the task that is why, or at its name. */
export function goToAlarm(by: 1 | -1): void {
  const lines = [...document.querySelectorAll<HTMLElement>(".grid-row.alarm, .run-line.alarm")];
  const place = lines.findIndex((line) => line.contains(document.activeElement));
  const line = lines[place < 0 ? (by > 0 ? 0 : lines.length - 1) : (place + by + lines.length) % lines.length];
  const stop = line?.querySelector<HTMLElement>(":is(.grid-why, .run-trouble) a[data-stop]") ?? line?.querySelector<HTMLElement>("a[data-stop]");
  if (stop) focusOn(stop);
  else say("No run on this page needs action.");
}
