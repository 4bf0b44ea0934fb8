/** Said before it is done: exactly what will happen, and the button that does it. */
import { useQueryClient, type QueryKey } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useDeed } from "./deed";
import { Dialog } from "./Dialog";
import { Button, Failure } from "./parts";
import { say } from "./toasts";

export interface ConfirmProps {
  title: string;
  button: string;
  danger?: boolean;
  stale: QueryKey; // what has changed afterwards
  act: () => Promise<unknown>;
  onClose: () => void;
  children: ReactNode;
}

export function Confirm({ title, button, danger = false, stale, act, onClose, children }: ConfirmProps) {
  const queries = useQueryClient();
  const acting = useDeed({
    mutationFn: act,
    onSuccess: () => {
      say(`${title}: done`);
      void queries.invalidateQueries({ queryKey: stale });
      onClose();
    },
  });
  return (
    <Dialog title={title} onClose={onClose}>
      <h2>{title}</h2>
      {children}
      {acting.error !== null && <Failure error={acting.error} />}
      <div className="dialog-foot">
        <Button onClick={onClose}>{button.startsWith("Cancel") ? "Close" : "Cancel"}</Button>
        <Button look={danger ? "danger" : "primary"} {...(danger ? {} : { "data-focus": true })} disabled={acting.isPending} onClick={() => acting.mutate()}>{button}</Button>
      </div>
    </Dialog>
  );
}
