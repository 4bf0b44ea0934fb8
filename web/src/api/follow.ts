/** Documents that follow events: asked for again, a little later and once for many events. */
import { useQueryClient, type QueryKey } from "@tanstack/react-query";
import { useEffect } from "react";
import { setConnection } from "./connection";
import { EventStream } from "./stream";

const CALM_MS = 1_500;

/** What is known under this key is fresh again soon after an event of the kind. */
export function useFollowing(kind: "run" | "task", key: QueryKey): void {
  const queries = useQueryClient();
  const text = JSON.stringify(key);
  useEffect(() => {
    let timer = 0;
    const refresh = () => {
      timer = 0;
      void queries.invalidateQueries({ queryKey: JSON.parse(text) as QueryKey });
    };
    const stream = new EventStream({
      query: { kind },
      onConnection: setConnection,
      onEvent: () => { timer ||= window.setTimeout(refresh, CALM_MS); },
    });
    stream.start();
    return () => {
      window.clearTimeout(timer);
      stream.stop();
      setConnection("idle");
    };
  }, [queries, kind, text]);
}
