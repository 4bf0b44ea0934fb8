/** Acting on a run: every command is shown with its consequences before it is given. */
import { createContext, use, useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import type { Action } from "../api/types";
import { ActionDialog } from "./ActionDialog";
import { forget, useAsked } from "./asking";
import { CommandFormDialog } from "./CommandForm";

interface Acting {
  /** `onDone`: accepted by the scheduler. */
  act: (action: Action, onDone?: () => void) => void;
  /** The command that is being thought about, and what it would do. */
  action: Action | null;
  change: (action: Action) => void;
  /** A command is written: about a glob, or of another kind than the buttons have. It begins with these tasks. */
  write: (ids: readonly string[]) => void;
  /** Nothing is thought about any more. */
  leave: () => void;
  /** It stands beside a drawing that shows what would happen. */
  docked: boolean;
}

// What these would set going is worth a drawing.
const DRAWN = ["trigger", "set", "remove"];

const Context = createContext<Acting | null>(null);

interface Props {
  run: string;
  /** Something below shows what would happen (`useActing().action`, `useTried`), so it must be seen. */
  draws?: boolean;
  /** It is the page of the run: what is asked for elsewhere, as in the palette, is shown here. */
  takes?: boolean;
  children: ReactNode;
}

export function ActingProvider({ run, draws = false, takes = false, children }: Props) {
  const [action, setAction] = useState<Action | null>(null);
  const [writing, setWriting] = useState<readonly string[] | null>(null);
  const asked = useAsked();
  const done = useRef<(() => void) | undefined>(undefined);
  const docked = action !== null && draws && DRAWN.includes(action.verb);
  const acting = useMemo(() => {
    const leave = () => {
      setAction(null);
      setWriting(null);
    };
    const act = (given: Action, onDone?: () => void) => {
      done.current = onDone;
      setAction(given);
    };
    return { act, change: setAction, write: setWriting, leave, action, docked };
  }, [action, docked]);
  const { act } = acting;
  useEffect(() => {
    if (!takes || asked?.run !== run) return;
    act(asked.action);
    forget();
  }, [takes, asked, run, act]);
  return (
    <Context value={acting}>
      {children}
      {action !== null && <ActionDialog run={run} action={action} docked={docked} onChange={setAction} onClose={() => setAction(null)} onDone={() => done.current?.()} />}
      {writing !== null && <CommandFormDialog ids={writing} onClose={() => setWriting(null)} onDone={(written) => { setWriting(null); acting.act(written); }} />}
    </Context>
  );
}

export function useActing(): Acting {
  const acting = use(Context);
  if (acting === null) throw new Error("useActing is for what is drawn below an ActingProvider");
  return acting;
}
