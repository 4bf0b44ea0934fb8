/** Acting on a run: every command is shown with its consequences before it is given. */
import { createContext, use, useMemo, useRef, useState, type ReactNode } from "react";
import type { Action } from "../api/types";
import { ActionDialog } from "./ActionDialog";
import { CommandFormDialog } from "./CommandForm";

interface Acting {
  /** `onDone`: the scheduler has taken it. */
  act: (action: Action, onDone?: () => void) => void;
  /** The command that is being thought about, and what it would do. */
  action: Action | null;
  change: (action: Action) => void;
  /** Somebody writes a command: about a glob, or of another kind than the buttons have. */
  write: () => void;
  /** Nothing is thought about any more. */
  leave: () => void;
  /** It stands beside a drawing that shows what would happen. */
  docked: boolean;
}

// What these would set going is worth a drawing.
const DRAWN = ["trigger", "set", "remove"];

const Context = createContext<Acting | null>(null);

/** `draws`: something below shows what would happen (`useActing().action`, `useTried`), so it must be seen. */
export function ActingProvider({ run, draws = false, children }: { run: string; draws?: boolean; children: ReactNode }) {
  const [action, setAction] = useState<Action | null>(null);
  const [writing, setWriting] = useState(false);
  const done = useRef<(() => void) | undefined>(undefined);
  const docked = action !== null && draws && DRAWN.includes(action.verb);
  const acting = useMemo(() => {
    const leave = () => {
      setAction(null);
      setWriting(false);
    };
    const act = (given: Action, onDone?: () => void) => {
      done.current = onDone;
      setAction(given);
    };
    return { act, change: setAction, write: () => setWriting(true), leave, action, docked };
  }, [action, docked]);
  return (
    <Context value={acting}>
      {children}
      {action !== null && <ActionDialog run={run} action={action} docked={docked} onChange={setAction} onClose={() => setAction(null)} onDone={() => done.current?.()} />}
      {writing && <CommandFormDialog onClose={() => setWriting(false)} onDone={(written) => { setWriting(false); acting.act(written); }} />}
    </Context>
  );
}

export function useActing(): Acting {
  const acting = use(Context);
  if (acting === null) throw new Error("useActing is for what is drawn below an ActingProvider");
  return acting;
}
