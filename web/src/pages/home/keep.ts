/** What this browser keeps of the home page: views with names, and whether it notifies. */

const VIEWS = "tidewheel.saved-views";
const NOTIFY = "tidewheel.notify";
export const VIEWS_MAX = 30;

export interface SavedView {
  name: string;
  search: string; // what stands behind the ? of its address
}

/** What is kept may be of another version, or written by hand. */
export function readViews(text: string | null): SavedView[] {
  try {
    const found: unknown = JSON.parse(text ?? "[]");
    if (!Array.isArray(found)) return [];
    return found.filter((one): one is SavedView => typeof one === "object" && one !== null && typeof (one as SavedView).name === "string" && typeof (one as SavedView).search === "string").slice(0, VIEWS_MAX);
  } catch {
    return [];
  }
}

/** One of the same name is replaced; the oldest goes where there are too many. */
export const withView = (views: readonly SavedView[], view: SavedView): SavedView[] => [...views.filter((one) => one.name !== view.name), view].slice(-VIEWS_MAX);

export const savedViews = (): SavedView[] => readViews(localStorage.getItem(VIEWS));
export const keepViews = (views: readonly SavedView[]): void => localStorage.setItem(VIEWS, JSON.stringify(views));
export const notifies = (): boolean => localStorage.getItem(NOTIFY) === "1" && "Notification" in window && Notification.permission === "granted";
export const keepNotifying = (on: boolean): void => (on ? localStorage.setItem(NOTIFY, "1") : localStorage.removeItem(NOTIFY));
