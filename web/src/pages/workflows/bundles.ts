/** What was dropped onto the page: an archive, or the files of one definition. */
import { registerArchive, registerFiles, type Registered } from "../../api/registry";

const ARCHIVES: readonly [RegExp, string][] = [
  [/\.zip$/i, "application/zip"],
  [/\.(tgz|tar\.gz)$/i, "application/gzip"],
  [/\.tar$/i, "application/x-tar"],
];

/** null: it is no archive. */
export const archiveType = (name: string): string | null => ARCHIVES.find(([ends]) => ends.test(name))?.[1] ?? null;

/** What keeps these files from being one bundle; "" if nothing does. */
export function bundleProblem(names: readonly string[]): string {
  if (names.length === 0) return "You dropped no file. Drop a zip or tar, or a single definition.";
  if (names.length > 1 && names.some((name) => archiveType(name) !== null)) return "Drop one archive at a time: each is registered whole or not at all.";
  return "";
}

const BYTES_IN_ONE_CALL = 8_192;

export function base64Of(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += BYTES_IN_ONE_CALL) text += String.fromCharCode(...bytes.subarray(at, at + BYTES_IN_ONE_CALL));
  return btoa(text);
}

export async function registerBundle(files: readonly File[], name: string, version: string): Promise<Registered> {
  const problem = bundleProblem(files.map((file) => file.name));
  if (problem !== "") throw new Error(problem);
  const [first] = files;
  const mediaType = first && archiveType(first.name);
  if (first && mediaType) return registerArchive(first, mediaType, name, version);
  const contents = await Promise.all(files.map(async (file) => [file.name, { base64: base64Of(new Uint8Array(await file.arrayBuffer())) }] as const));
  return registerFiles(Object.fromEntries(contents), name, version);
}
