/** What stands behind the ? of an address: plain texts, readable and easy to write by hand. */

export type Search = Record<string, string>;

export function parseSearch(text: string): Search {
  return Object.fromEntries(new URLSearchParams(text));
}

export function stringifySearch(search: Record<string, unknown>): string {
  const said = Object.entries(search).filter((pair): pair is [string, string] => typeof pair[1] === "string" && pair[1] !== "");
  if (said.length === 0) return "";
  // Ids and lists stay readable: these letters mean nothing there.
  return `?${new URLSearchParams(said).toString().replaceAll("%2C", ",").replaceAll("%2F", "/").replaceAll("%3A", ":")}`;
}
