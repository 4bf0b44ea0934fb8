/** From what somebody typed to the values of a request. */
import type { Parameter } from "../../api/registry";

/** JSON where it is JSON, else text; null where it is neither. */
export function valueOf(text: string): { value: unknown } | null {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    // What begins like JSON was meant to be some.
    return /^\s*[[{"]/.test(text) ? null : { value: text };
  }
}

export function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return { string: "text", number: "a number", boolean: "true or false", object: "an object" }[typeof value as string] ?? "";
}

export const textOf = (value: unknown): string => (typeof value === "string" && valueOf(value)?.value === value ? value : JSON.stringify(value));

export interface Filled {
  values: Record<string, unknown>;
  /** Names whose text cannot be read. */
  wrong: string[];
  /** Required names without a value. */
  missing: string[];
}

/** An empty field leaves the default as it is. */
export function filled(parameters: readonly Parameter[], texts: Readonly<Record<string, string>>): Filled {
  const found: Filled = { values: {}, wrong: [], missing: [] };
  for (const { name, required } of parameters) {
    const text = texts[name] ?? "";
    const read = valueOf(text);
    if (text.trim() === "") {
      if (required) found.missing.push(name);
    } else if (read === null) found.wrong.push(name);
    else found.values[name] = read.value;
  }
  return found;
}

/** What a request must give. */
export const needsOf = (parameters: readonly Parameter[]): string[] => parameters.filter((one) => one.required).map((one) => one.name);

/** `name = value` in lines, for a template whose variables nobody declared. */
export function linesOf(text: string): { values: Record<string, unknown>; wrong: string[] } {
  const values: Record<string, unknown> = {};
  const wrong: string[] = [];
  for (const line of text.split("\n").filter((one) => one.trim() !== "")) {
    const [, name = "", given = ""] = /^\s*([\w.-]+)\s*[=:]\s*(.*)$/.exec(line) ?? [];
    const read = valueOf(given.trim());
    if (name === "" || given.trim() === "" || read === null) wrong.push(line.trim());
    else values[name] = read.value;
  }
  return { values, wrong };
}
