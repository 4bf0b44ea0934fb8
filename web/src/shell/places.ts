/** Where one can go: the source of navigation, the search palette and shortcuts. */

import { useMay } from "../api/session";

export interface Place {
  to: "/runs" | "/workflows" | "/requests" | "/tasks" | "/workers" | "/statistics" | "/tokens" | "/notifications";
  title: string;
  keys: string;
  icon: string; // of an SVG path in 16 × 16
  scope?: "admin"; // who may not is not led there
}

export const PLACES: readonly Place[] = [
  { to: "/runs", title: "Runs", keys: "g r", icon: "M2 4h8M2 8h12M2 12h6" },
  { to: "/workflows", title: "Workflows", keys: "g f", icon: "M3 3h3v3H3zM10 3h3v3h-3zM6.5 10.5h3v3h-3zM4.5 6v2h7V6M8 8v2.5" },
  { to: "/requests", title: "Requests", keys: "g q", icon: "M3 2.5h7l3 3v8H3zM10 2.5v3h3M5.5 8.5h5M5.5 11h3" },
  { to: "/tasks", title: "Tasks & queues", keys: "g t", icon: "M2 3.5h12v3H2zM2 9.5h12v3H2z" },
  { to: "/workers", title: "Workers", keys: "g w", icon: "M3 4h10v6H3zM6 13h4M8 10v3" },
  { to: "/statistics", title: "Statistics", keys: "g s", icon: "M3 13V8M8 13V3M13 13V6" },
  { to: "/tokens", title: "Tokens", keys: "g k", scope: "admin", icon: "M10 6.5a3 3 0 1 1-3-3 3 3 0 0 1 3 3zM9 8.5l4.5 4.5M12 11.5l1.5-1.5" },
  { to: "/notifications", title: "Notifications", keys: "g n", scope: "admin", icon: "M4 11V7a4 4 0 0 1 8 0v4l1 1.5H3zM6.8 14.2h2.4" },
];

/** Those that whoever looks may see. */
export function usePlaces(): readonly Place[] {
  const admin = useMay("admin");
  return PLACES.filter((place) => place.scope === undefined || admin);
}
