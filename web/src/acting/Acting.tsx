/** Acting on a run: every command is shown with its consequences before it is given. */
import { createContext, use, useMemo, useState, type ReactNode } from "react";
import type { Action } from "../api/types";
import { ActionDialog } from "./ActionDialog";

interface Acting {
  act: (action: Action) => void;
}

const Context = createContext<Acting | null>(null);

export function ActingProvider({ run, children }: { run: string; children: ReactNode }) {
  const [action, setAction] = useState<Action | null>(null);
  const acting = useMemo(() => ({ act: setAction }), []);
  return (
    <Context value={acting}>
      {children}
      {action !== null && <ActionDialog run={run} action={action} onClose={() => setAction(null)} />}
    </Context>
  );
}

export function useActing(): Acting {
  const acting = use(Context);
  if (acting === null) throw new Error("useActing is for what is drawn below an ActingProvider");
  return acting;
}
