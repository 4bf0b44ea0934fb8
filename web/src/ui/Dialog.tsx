/** A window over the page: the browser keeps the focus inside and gives it back; `data-focus` says where it begins. */
import { useLayoutEffect, useRef, type KeyboardEvent, type ReactNode } from "react";

/** From wherever one is in it. */
export const onControlEnter = (confirm: (() => void) | undefined) => (event: KeyboardEvent) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  confirm?.();
};

export function Dialog({ title, onClose, onConfirm, children, className = "" }: {
  title: string;
  onClose: () => void;
  onConfirm?: () => void;
  children: ReactNode;
  className?: string;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  // Before it leaves the page: only then the browser gives the focus back to where it was.
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    dialog?.querySelector<HTMLElement>("[data-focus]")?.focus();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={ref}
      className={`dialog ${className}`}
      aria-label={title}
      onKeyDown={onControlEnter(onConfirm)}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === ref.current) onClose();
      }}
    >
      <div className="dialog-body">{children}</div>
    </dialog>
  );
}
