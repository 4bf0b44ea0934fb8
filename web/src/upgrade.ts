/** A server that was upgraded has other files: the page that was open before is loaded anew. */

const KEY = "tidewheel.reloaded";
const AGAIN_MS = 30_000; // sooner, it would not help

/** Whether a page that was loaded anew at this time, if ever, may be loaded anew now. */
export function mayReload(last: string | null, now: number): boolean {
  return last === null || !(now - Number(last) < AGAIN_MS);
}

export function reloadAfterUpgrade(): void {
  window.addEventListener("vite:preloadError", (event) => {
    if (!mayReload(sessionStorage.getItem(KEY), Date.now())) return;
    event.preventDefault();
    sessionStorage.setItem(KEY, String(Date.now()));
    location.reload();
  });
}
