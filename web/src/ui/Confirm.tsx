/** What will happen, and the button that lets it happen. */
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Dialog } from "./Dialog";
import { Button, Failure } from "./parts";

export function Confirm({ title, button, act, onDone, onClose, danger = true, children }: {
  title: string;
  button: string;
  act: () => Promise<unknown>;
  onDone: () => void;
  onClose: () => void;
  danger?: boolean;
  children: ReactNode;
}) {
  const acting = useMutation({ mutationFn: act, onSuccess: onDone });
  return (
    <Dialog title={title} onClose={onClose}>
      <h2>{title}</h2>
      {children}
      {acting.error !== null && <Failure error={acting.error} />}
      <div className="dialog-foot">
        <Button autoFocus onClick={onClose}>Leave it</Button>
        <Button look={danger ? "danger" : "primary"} disabled={acting.isPending} onClick={() => acting.mutate()}>{acting.isPending ? "One moment …" : button}</Button>
      </div>
    </Dialog>
  );
}
