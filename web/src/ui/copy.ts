/** The clipboard is there with https and on localhost alone. */
import { say } from "./toasts";

export async function copyText(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied: ${what}`);
  } catch {
    say(`The browser did not allow copying. Copy it from here: ${text}`, true);
  }
}
