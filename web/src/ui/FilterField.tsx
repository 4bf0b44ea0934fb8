/** A field for a filter: the same grammar wherever one stands (globs.ts), and what is wrong with what was written. */
import { useEffect, useId, useRef, useState, type RefObject } from "react";
import { FILTER_HELP, FILTER_LENGTH_MAX } from "./globs";

interface FieldProps {
  label: string;
  placeholder: string;
  value: string;
  change: (text: string) => void;
  problem?: string;
  /** So long nobody must have written anything before it counts; 0: at once. */
  pause?: number;
  input?: RefObject<HTMLInputElement | null>;
}

export function FilterField({ label, placeholder, value, change, problem = "", pause = 0, input }: FieldProps) {
  const [text, setText] = usePaused(value, change, pause);
  const id = useId();
  return (
    <span className="filter-field">
      <input
        ref={input} className="input" type="search" placeholder={placeholder} aria-label={label} title={FILTER_HELP} maxLength={FILTER_LENGTH_MAX}
        aria-invalid={problem !== ""} aria-describedby={problem === "" ? undefined : id} value={text} onChange={(event) => setText(event.target.value)}
      />
      {problem !== "" && <span id={id} className="filter-problem" role="status">{problem}</span>}
    </span>
  );
}

/** What is being written, told when somebody has stopped writing. */
function usePaused(value: string, change: (text: string) => void, pause: number): [string, (text: string) => void] {
  const [text, setText] = useState(value);
  const said = useRef(value); // what was told, or found
  useEffect(() => {
    if (value === said.current) return;
    said.current = value; // somebody else changed it: a link, or a button that clears all
    setText(value);
  }, [value]);
  useEffect(() => {
    if (text === said.current) return undefined;
    const tell = () => {
      said.current = text;
      change(text);
    };
    if (pause === 0) {
      tell();
      return undefined;
    }
    const timer = window.setTimeout(tell, pause);
    return () => window.clearTimeout(timer);
  }, [text, change, pause]);
  return [text, setText];
}
