/** Who looks at the page, and what they may do. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { sessionQuery } from "./queries";
import type { Scope } from "./types";

/** Buttons that would be refused are not shown. */
export function useMay(scope: Scope): boolean {
  const { data } = useQuery(sessionQuery);
  return data !== undefined && (data.scopes.includes(scope) || data.scopes.includes("admin"));
}

const TABS = "tidewheel.session";

/**
 * Tabs of one browser share their session: whoever logs in here is known in the others, and a session that took the place of
 * another has another word for changes. `known`: this tab is; `look`: another tab is, or somebody comes back to this one.
 */
export function useOtherTabs(known: boolean, look: () => void): void {
  const latest = useRef({ known, look });
  const tabs = useRef<BroadcastChannel | null>(null);
  useEffect(() => {
    latest.current = { known, look };
  });
  useEffect(() => {
    const channel = new BroadcastChannel(TABS);
    channel.onmessage = () => latest.current.look();
    tabs.current = channel;
    const seen = () => {
      if (!document.hidden && !latest.current.known) latest.current.look();
    };
    document.addEventListener("visibilitychange", seen);
    return () => {
      channel.close();
      document.removeEventListener("visibilitychange", seen);
    };
  }, []);
  useEffect(() => {
    if (known) tabs.current?.postMessage("known");
  }, [known]);
}
