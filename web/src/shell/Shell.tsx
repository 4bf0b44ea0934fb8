/** What surrounds every page: bar, navigation, connection, palette, messages. */
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useLocation, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useCallback, useRef, useState, type MouseEvent } from "react";
import { ActionDialog } from "../acting/ActionDialog";
import { forget, useAsked, type Asked } from "../acting/asking";
import { useConnection } from "../api/connection";
import { post } from "../api/http";
import { sessionQuery } from "../api/queries";
import type { Action } from "../api/types";
import { PANEL } from "../panel/entering";
import { ErrorBoundary } from "../ui/ErrorBoundary";
import { useKeptFocus } from "../ui/focus";
import { useClosing, useMenu } from "../ui/menus";
import { Button, Keys } from "../ui/parts";
import { toggleTheme, useTheme } from "../ui/theme";
import { timeZone } from "../ui/time";
import { Toasts } from "../ui/toasts";
import { keyOf, shownKeys, withKey } from "./keys";
import { usePlaces, type Place } from "./places";
import { SearchPalette } from "./SearchPalette";
import { ShortcutList } from "./ShortcutList";
import { useShortcut, useShortcutKeys } from "./shortcuts";
import "./shell.css";

const CONTENT = "content";

export function Shell() {
  const [open, setOpen] = useState<"search" | "keys" | null>(null);
  useShortcutKeys();
  useKeptFocus(CONTENT);
  useShortcut("palette", () => setOpen(open === "search" ? null : "search"));
  useShortcut("help", () => setOpen("keys"));
  useShortcut("theme", toggleTheme);
  return (
    <div className="shell">
      <SkipLinks />
      <header className="bar">
        <Link to="/runs" className="brand" aria-label="tidewheel: all runs">
          <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden>
            <circle cx="16" cy="16" r="12" /><path d="M5 17c4-4 7-4 11 0s7 4 11 0" /><circle className="hub" cx="16" cy="16" r="2.5" />
          </svg>
          <span>tidewheel</span>
        </Link>
        <Pages />
        <div className="bar-end">
          <ConnectionSign />
          <Button look="quiet" className="search-button" onClick={() => setOpen("search")} title={withKey("Search and act", "palette")}>
            <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden><path d="M10.5 10.5 14 14M11.5 7a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0Z" fill="none" stroke="currentColor" strokeWidth="1.6" strokeLinecap="round" /></svg>
            <span className="wide">Search</span> <Keys keys={shownKeys(keyOf("palette").keys)} />
          </Button>
          <ThemeButton />
          <a className="button quiet docs-button" href="/docs/" aria-label="Documentation" title="Documentation">
            <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden><path d="M8 4.2C6.5 3 4.5 2.8 2 3v9.5c2.5-.2 4.5 0 6 1.2 1.5-1.2 3.5-1.4 6-1.2V3c-2.5-.2-4.5 0-6 1.2Zm0 0v9.3" fill="none" stroke="currentColor" strokeWidth="1.5" strokeLinejoin="round" /></svg>
          </a>
          <Who />
        </div>
      </header>
      <main id={CONTENT} tabIndex={-1}>
        <ErrorBoundary what="This page"><Outlet /></ErrorBoundary>
      </main>
      {open === "search" && <SearchPalette onClose={() => setOpen(null)} />}
      {open === "keys" && <ShortcutList onClose={() => setOpen(null)} />}
      <AskedDialog />
      <Toasts />
    </div>
  );
}

/** Past the bar, and past the views to the task that is open. */
function SkipLinks() {
  const { select }: { select?: string } = useSearch({ strict: false });
  const isOfRun = useParams({ strict: false, select: (found) => "run" in found });
  const to = (id: string) => (event: MouseEvent) => {
    event.preventDefault(); // the address stays as it is
    document.getElementById(id)?.focus();
  };
  return (
    <>
      <a className="skip" href={`#${CONTENT}`} onClick={to(CONTENT)}>Skip to the content</a>
      {isOfRun && select !== undefined && <a className="skip" href={`#${PANEL}`} onClick={to(PANEL)}>Skip to the task</a>}
    </>
  );
}

/** What the palette asks for where no run is on the screen. */
function AskedDialog() {
  const asked = useAsked();
  const isOfRun = useParams({ strict: false, select: (found) => "run" in found });
  const [changed, setChanged] = useState<{ of: Asked; action: Action } | null>(null);
  if (asked === null || isOfRun) return null;
  const shown = changed?.of === asked ? changed.action : asked.action;
  return <ActionDialog run={asked.run} action={shown} docked={false} onChange={(action) => setChanged({ of: asked, action })} onClose={forget} onDone={() => undefined} />;
}

/** In the bar; where it has no room, behind a button that says which page it is. */
function Pages() {
  const places = usePlaces();
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLElement>(null);
  const close = useCallback(() => setOpen(false), []);
  useClosing(box, close);
  const { pathname } = useLocation();
  const here = places.find(({ to }) => pathname.startsWith(to));
  return (
    <nav aria-label="Pages" ref={box}>
      <Button look="quiet" className="pages-button" aria-expanded={open} aria-controls="pages" aria-label={`Menu: ${here?.title ?? "Pages"}`} onClick={() => setOpen(!open)}>
        <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden><path d="M2 4h12M2 8h12M2 12h12" /></svg>
        <span>{here?.title ?? "Pages"}</span>
      </Button>
      <div id="pages" className={open ? "pages open" : "pages"} onClick={close}>{places.map((place) => <NavLink key={place.to} place={place} />)}</div>
    </nav>
  );
}

function NavLink({ place }: { place: Place }) {
  const navigate = useNavigate();
  useShortcut(place.to, () => void navigate({ to: place.to }));
  return (
    <Link to={place.to} aria-label={place.title} title={withKey(place.title, place.to)} activeProps={{ className: "active", "aria-current": "page" }}>
      <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden><path d={place.icon} /></svg>
      <span>{place.title}</span>
    </Link>
  );
}

const CONNECTIONS = {
  idle: ["", ""],
  connecting: ["connecting", "Connecting to the server"],
  live: ["live", "Changes are shown as they happen"],
  lost: ["reconnecting", "The connection was lost. This page connects again automatically; until then, what you see may be old."],
  asleep: ["paused", "The page was hidden for a while and was not updated; it is updated again now"],
} as const;

function ConnectionSign() {
  const connection = useConnection();
  const [word, says] = CONNECTIONS[connection];
  if (word === "") return null;
  return <span className={`connection ${connection}`} role="status" title={says}><i aria-hidden /><span>{word}</span></span>;
}

function ThemeButton() {
  useTheme();
  return (
    <Button look="quiet" className="theme-button" onClick={toggleTheme} aria-label="Dark or light" title={withKey("Dark or light", "theme")}>
      <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden><circle cx="8" cy="8" r="5.5" fill="none" stroke="currentColor" strokeWidth="1.5" /><path d="M8 2.5a5.5 5.5 0 0 1 0 11Z" fill="currentColor" /></svg>
    </Button>
  );
}

function Who() {
  const { data } = useQuery(sessionQuery);
  const [box] = useMenu();
  if (data === undefined) return null;
  const may = data.scopes.join(", ");
  const leave = () => void post("/logout").catch(() => undefined).then(() => location.reload());
  return (
    <details className="who" ref={box}>
      <summary title={`You are ${data.name}, and may: ${may}`}>
        <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden><path d="M10.8 5.2a2.8 2.8 0 1 1-5.6 0 2.8 2.8 0 0 1 5.6 0ZM2.8 13.8c.4-2.9 2.4-4.3 5.2-4.3s4.8 1.4 5.2 4.3" fill="none" stroke="currentColor" strokeWidth="1.5" strokeLinecap="round" /></svg> <span className="who-name">{data.name}</span>
      </summary>
      <div className="who-menu card">
        <p>You are <b>{data.name}</b> and may: {may}.</p>
        <p className="muted">Times are in the time zone {timeZone()}; hover over a time to see it in UTC.</p>
        <p><a href="/docs/">Documentation</a> · <a href="/api/v1/docs">REST API</a> · <a href="/status">page without JavaScript</a></p>
        <div className="who-buttons"><Button onClick={toggleTheme}>Dark or light</Button><Button onClick={leave}>Log out</Button></div>
      </div>
    </details>
  );
}
