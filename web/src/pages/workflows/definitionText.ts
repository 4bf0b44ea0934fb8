/** A file of a definition as lines of coloured words. A small reader of its own: nothing in a file can make it slow or draw anything. */
import type { Finding } from "../../api/http";

export type Kind = "" | "comment" | "section" | "key" | "string" | "template";
export type Token = readonly [Kind, string];
export type Language = "cylc" | "yaml" | "json" | "script" | "";

export const SHOWN_BYTES_MAX = 1024 * 1024;
const COLOURED_MAX = 2_000; // letters of a line; what is longer is shown as it is

export function languageOf(path: string): Language {
  const name = path.toLowerCase().replace(/\.(j2|jinja2?)$/, "");
  if (/\.(cylc|rc|conf|toml|ini)$/.test(name)) return "cylc";
  if (/\.ya?ml$/.test(name)) return "yaml";
  if (name.endsWith(".json")) return "json";
  return /\.(py|sh|bash|r|jl|env)$/.test(name) || !name.includes(".") ? "script" : "";
}

/** null: it is not text. */
export function textOfBytes(bytes: Uint8Array): string | null {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

export const bytesOfBase64 = (content: string): Uint8Array => Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));

/** The file that people look for first. */
export function mainFile(paths: readonly string[]): string {
  const ranks = [/^flow\.cylc$/, /^suite\.rc$/, /(^|\/)flow\.cylc$/, /^[^/]*\.ya?ml(\.j2)?$/, /^[^/]*\.json$/, /\.py$/];
  for (const rank of ranks) {
    const found = paths.find((path) => rank.test(path));
    if (found !== undefined) return found;
  }
  return paths[0] ?? "";
}

const HEADS: Record<Language, RegExp | null> = {
  cylc: /^(\s*)([^=#"'[\]{}\s][^=#]*?)(\s*\+?=)/,
  yaml: /^(\s*(?:- +)*)("[^"]*"|'[^']*'|[\w.\-/$@]+)(\s*:)(?=\s|$)/,
  json: /^(\s*)("(?:[^"\\]|\\.)*")(\s*:)/,
  script: null,
  "": null,
};
const WORDS = /\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|"(?:[^"\\]|\\.)*"|'[^']*'|(?:^|(?<=\s))#.*$/g;

const kindOfWord = (word: string): Kind => (word.startsWith("#") || word.startsWith("{#") ? "comment" : word.startsWith("{") ? "template" : "string");

function wordsOf(text: string, language: Language): Token[] {
  const found: Token[] = [];
  let end = 0;
  for (const match of text.matchAll(WORDS)) {
    if (match[0].startsWith("#") && language === "json") continue;
    if (match.index > end) found.push(["", text.slice(end, match.index)]);
    found.push([kindOfWord(match[0]), match[0]]);
    end = match.index + match[0].length;
  }
  if (end < text.length) found.push(["", text.slice(end)]);
  return found;
}

function headed(line: string, language: Language): Token[] {
  if (language === "cylc" && /^\s*\[.*\]\s*(#.*)?$/.test(line)) {
    const at = line.lastIndexOf("]") + 1;
    return [["section", line.slice(0, at)], ...wordsOf(line.slice(at), language)];
  }
  const found = HEADS[language]?.exec(line);
  if (!found) return wordsOf(line, language);
  const [whole, space = "", key = "", sign = ""] = found;
  return [["", space], ["key", key], ["", sign], ...wordsOf(line.slice(whole.length), language)].filter(([, text]) => text !== "") as Token[];
}

const TRIPLE = /"""|'''/;

/** Each line as its words; a text in three quotes goes over lines. */
export function coloured(lines: readonly string[], language: Language): Token[][] {
  let open: string | null = null;
  return lines.map((line): Token[] => {
    if (language === "" || line.length > COLOURED_MAX) return [["", line]];
    if (open !== null) {
      const at = line.indexOf(open);
      if (at < 0) return [["string", line]];
      const end = at + open.length;
      open = null;
      return [["string", line.slice(0, end)], ...wordsOf(line.slice(end), language)];
    }
    const quote = language === "cylc" || language === "script" ? TRIPLE.exec(line) : null;
    if (quote === null || /^\s*#/.test(line)) return headed(line, language);
    const [before, rest] = [line.slice(0, quote.index), line.slice(quote.index)];
    const at = rest.indexOf(quote[0], quote[0].length);
    if (at < 0) open = quote[0];
    const end = at < 0 ? rest.length : at + quote[0].length;
    return [...headed(before, language), ["string", rest.slice(0, end)], ...wordsOf(rest.slice(end), language)];
  });
}

/** Findings of one file by their lines; one that names no file is about the main one. */
export function findingsByLine(findings: readonly Finding[], path: string): Map<number, Finding[]> {
  const found = new Map<number, Finding[]>();
  for (const one of findings) {
    if (one.line === null || !isFile(one.file, path)) continue;
    found.set(one.line, [...(found.get(one.line) ?? []), one]);
  }
  return found;
}

/** A finding may name a file with the folder in which it lay. */
export const isFile = (named: string | null, path: string): boolean => named !== null && (named === path || named.endsWith(`/${path}`));
