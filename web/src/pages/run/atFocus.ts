/** The task whose box, line or row has the focus; what shows tasks marks them with `data-task`. */

export function taskAtFocus(): string | null {
  const has = document.activeElement;
  if (has === null) return null;
  // Lists of which only a part is drawn have the focus as a whole, and say which line it is about.
  const line = has.getAttribute("aria-activedescendant");
  const at = line === null ? has.closest<HTMLElement>("[data-task]") : document.getElementById(line);
  return at?.dataset.task ?? null;
}
