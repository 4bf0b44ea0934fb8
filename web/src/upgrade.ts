/**
 * Parts of the page that are loaded later: a lost server never loses the tab.
 *
 * Every part is fetched in the background soon after the page was drawn, so that a click needs no server. A part that cannot be had
 * waits until the server answers again. If the server answers and the part is still not there, the server was upgraded and has other
 * files: then, and only then, the page is loaded anew.
 */
import { serverAnswers } from "./api/connection";

const KEY = "tidewheel.reloaded";
const AGAIN_MS = 30_000; // sooner, it would not help
const ASK_MS = 2_000;
const CALM_MS = 1_500; // after the first drawing, before parts are fetched that nobody asked for yet

type Load = () => Promise<unknown>;
const parts: Load[] = [];

/** Whether a page that was loaded anew at this time, if ever, may be loaded anew now. */
export function mayReload(last: string | null, now: number): boolean {
  return last === null || !(now - Number(last) < AGAIN_MS);
}

/** What a part needs from its surroundings; tests bring their own. */
export interface Surroundings {
  answers(): Promise<boolean>;
  pause(): Promise<void>;
  /** Loads the page anew; false if that was tried a moment ago. */
  reload(): boolean;
}

const browser: Surroundings = {
  answers: serverAnswers,
  pause: () => new Promise((resolve) => setTimeout(resolve, ASK_MS)),
  reload: () => {
    if (!mayReload(sessionStorage.getItem(KEY), Date.now())) return false;
    sessionStorage.setItem(KEY, String(Date.now()));
    location.reload();
    return true;
  },
};

/** Loads a part, however long the server is away; throws only what a part says itself. */
export async function loaded<T>(load: () => Promise<T | undefined>, around: Surroundings = browser): Promise<T> {
  let seen: unknown = new Error("this part of the page is missing on the server");
  for (let isThere = false; ; ) {
    try {
      const part = await load();
      if (part !== undefined) return part; // undefined: its style is missing, and nobody was told
    } catch (error) {
      seen = error;
    }
    if (isThere) {
      if (around.reload()) return new Promise(() => {});
      throw seen;
    }
    while (!(isThere = await around.answers())) await around.pause();
  }
}

/** A part that is loaded when it is needed, or earlier if there is time. */
export function part<T>(load: () => Promise<T>): () => Promise<T> {
  const whole = () => loaded(load);
  parts.push(load);
  return whole;
}

/** Fetches every part once the page is calm, one after the other; what fails is tried again when needed. */
export function fetchParts(): void {
  // A failed style of a part is told by this event, and else by a page that reloads itself into nothing.
  window.addEventListener("vite:preloadError", (event) => event.preventDefault());
  setTimeout(() => void parts.reduce((before, load) => before.then(load).catch(() => undefined), Promise.resolve<unknown>(undefined)), CALM_MS);
}
