/** Who looks at the page, and what they may do. */
import { useQuery } from "@tanstack/react-query";
import { sessionQuery } from "./queries";
import type { Scope } from "./types";

/** Buttons that would be refused are not shown. */
export function useMay(scope: Scope): boolean {
  const { data } = useQuery(sessionQuery);
  return data !== undefined && (data.scopes.includes(scope) || data.scopes.includes("admin"));
}
