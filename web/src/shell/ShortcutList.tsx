/** Every key that does something just now. */
import { Dialog } from "../ui/Dialog";
import { Keys } from "../ui/parts";
import { shortcutList } from "./shortcuts";

export function ShortcutList({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Shortcuts" onClose={onClose}>
      <h2>Shortcuts</h2>
      <dl className="shortcut-list">
        {shortcutList().map((one) => (
          <div key={one.keys}>
            <dt>{one.says}</dt>
            <dd><Keys keys={one.keys.replace("Control+k", "Ctrl K").replace("Escape", "Esc")} /></dd>
          </div>
        ))}
        <div><dt>Close a window like this one</dt><dd><Keys keys="Esc" /></dd></div>
      </dl>
    </Dialog>
  );
}
