/** The keys that do something just now, in the groups of their table. */
import { Dialog } from "../ui/Dialog";
import { Keys } from "../ui/parts";
import { KEY_GROUPS, shownKeys } from "./keys";
import { activeKeys } from "./shortcuts";

export function ShortcutList({ onClose }: { onClose: () => void }) {
  const active = activeKeys();
  const groups = KEY_GROUPS.map(({ title, keys }) => ({ title, keys: keys.filter(({ id, by }) => by === "widget" || id === "close" || active.has(id)) })).filter(({ keys }) => keys.length > 0);
  return (
    <Dialog title="Keys" onClose={onClose} className="shortcuts">
      <h2>Keys</h2>
      <div className="shortcut-list">
        {groups.map(({ title, keys }) => (
          <section key={title} aria-label={title}>
            <h3>{title}</h3>
            <dl>
              {keys.map((one) => (
                <div key={one.id}>
                  <dt>{one.says}</dt>
                  <dd><Keys keys={shownKeys(one.keys)} /></dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
