/** A text that somebody types, once it has rested: nobody is asked about each letter. */
import { useEffect, useState } from "react";

export function useSettled(text: string, restMs: number): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(text), restMs);
    return () => window.clearTimeout(timer);
  }, [text, restMs]);
  return settled;
}
