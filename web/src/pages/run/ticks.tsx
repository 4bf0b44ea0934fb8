/** The tasks that are ticked for one action on all of them, the same in every view. */
import { createContext, use, useMemo, useState, type ReactNode } from "react";

interface Ticks {
  ticked: ReadonlySet<string>;
  tick: (ids: Iterable<string>, on: boolean) => void;
  clear: () => void;
}

const Context = createContext<Ticks | null>(null);

export function TicksProvider({ children }: { children: ReactNode }) {
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  const ticks = useMemo(
    () => ({
      ticked,
      tick: (ids: Iterable<string>, on: boolean) =>
        setTicked((old) => {
          const next = new Set(old);
          for (const id of ids) {
            if (on) next.add(id);
            else next.delete(id);
          }
          return next;
        }),
      clear: () => setTicked(new Set()),
    }),
    [ticked],
  );
  return <Context value={ticks}>{children}</Context>;
}

export function useTicks(): Ticks {
  const ticks = use(Context);
  if (ticks === null) throw new Error("useTicks is for views of a run");
  return ticks;
}
