/** Tokens: how one is, and how one is asked for. */
import type { TokenFacts } from "../../api/storeTypes";
import type { Scope } from "../../api/types";

export const SCOPES: readonly [Scope, string][] = [
  ["read", "see tasks, runs, queues and logs"],
  ["submit", "submit tasks and start runs"],
  ["operate", "act on tasks, runs and queues"],
  ["worker", "take tasks and report on them"],
  ["admin", "everything, including tokens and the audit"],
];

export interface TokenWish {
  name: string;
  scopes: Scope[];
  names: string; // patterns with commas; only an admin needs none
  lasts: string; // as PT1H or 30d; none: until it is revoked
}

export function tokenWord(token: Pick<TokenFacts, "revoked_at" | "expires_at">, now: number): "good" | "over" | "revoked" {
  if (token.revoked_at !== null) return "revoked";
  return token.expires_at !== null && Date.parse(token.expires_at) <= now ? "over" : "good";
}

export function tokenBody(wish: TokenWish): Record<string, unknown> {
  const list = (text: string) => text.split(/[\s,]+/).filter(Boolean);
  const names = list(wish.names);
  return {
    name: wish.name.trim(),
    scopes: wish.scopes,
    ...(names.length > 0 ? { names } : {}),
    ...(wish.lasts.trim() ? { lasts: wish.lasts.trim() } : {}),
  };
}
