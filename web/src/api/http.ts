/** Requests to the server that sent this page; whatever goes wrong is a Problem with words. */
import { setAnswered } from "./connection";

const API = "/api/v1";
const AWAY = "The server does not answer. Check that it is running, then try again.";
// Nothing that changes something is asked for twice.
const UNKNOWN = "The server did not answer, so it is not known whether the action was carried out. Check what has changed before you try again.";

/** Something that is wrong or remarkable in a definition, and where. */
export interface Finding {
  severity: string;
  code: string;
  message: string;
  hint: string;
  file: string | null;
  line: number | null;
  column: number | null;
}

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly findings: string[] = [],
    /** Those of a definition, with their places. */
    readonly placed: Finding[] = [],
  ) {
    super(message);
  }

  /** Nobody answered, or was too busy: the same request may be answered later. */
  get passes(): boolean {
    return this.status === 0 || this.status === 429 || this.status === 503;
  }
}

let csrf: string | null = null;
const endings = new Set<() => void>();

/** What the session says goes with every change. */
export function setCsrf(token: string | null): void {
  csrf = token;
}

/** Called once the server knows this browser no longer. */
export function onSessionEnd(listener: () => void): () => void {
  endings.add(listener);
  return () => endings.delete(listener);
}

export function tellSessionEnd(): void {
  endings.forEach((listener) => listener());
}

export const get = <T>(path: string, signal?: AbortSignal): Promise<T> =>
  ask<T>("GET", path, undefined, signal);
export const post = <T>(path: string, body?: unknown): Promise<T> => ask<T>("POST", path, body);
/** A question that is too long for an address; it changes nothing. */
export const postLook = <T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> =>
  ask<T>("POST", path, body, signal, AWAY);
/** A file as it is. */
export const postFile = <T>(path: string, content: Blob, mediaType: string): Promise<T> =>
  ask<T>("POST", path, new Blob([content], { type: mediaType }));
export const patch = <T>(path: string, body: unknown): Promise<T> => ask<T>("PATCH", path, body);
export const remove = <T>(path: string): Promise<T> => ask<T>("DELETE", path);

/** The path of a run, a task, …: names may hold anything. */
export const inPath = (name: string): string => encodeURIComponent(name);

export const address = (path: string): string => API + path;

/** Bytes with the headers that say which part of a log they are. */
export async function getBytes(
  path: string,
  signal?: AbortSignal,
): Promise<{ bytes: Uint8Array; headers: Headers }> {
  const answer = await answered("GET", path, undefined, signal, AWAY);
  return { bytes: new Uint8Array(await received(answer.arrayBuffer(), AWAY, signal)), headers: answer.headers };
}

async function ask<T>(method: string, path: string, body?: unknown, signal?: AbortSignal, away = method === "GET" ? AWAY : UNKNOWN): Promise<T> {
  const answer = await answered(method, path, body, signal, away);
  return (answer.status === 204 ? undefined : await received(answer.json(), away, signal)) as T;
}

/** A server may also die while it answers. What is no JSON is a fault, which no further try mends. */
async function received<T>(answer: Promise<T>, away: string, signal?: AbortSignal): Promise<T> {
  try {
    const given = await answer;
    setAnswered(true);
    return given;
  } catch (error) {
    if (signal?.aborted || error instanceof SyntaxError) throw error;
    setAnswered(false);
    throw new Problem(0, "unreachable", away);
  }
}

async function answered(
  method: string,
  path: string,
  body: unknown,
  signal: AbortSignal | undefined,
  away: string,
): Promise<Response> {
  const headers: Record<string, string> = {};
  const isFile = body instanceof Blob;
  if (body !== undefined) headers["Content-Type"] = isFile ? body.type : "application/json";
  if (method !== "GET" && csrf !== null) headers["X-CSRF-Token"] = csrf;
  const asked = fetch(address(path), {
    method,
    headers,
    credentials: "same-origin",
    ...(body === undefined ? {} : { body: isFile ? body : JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  });
  const answer = await received(asked, away, signal);
  if (answer.status === 401) tellSessionEnd();
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}

async function problemOf(answer: Response): Promise<Problem> {
  try {
    const told = (await answer.json()) as { code?: string; message?: string; findings?: unknown[] };
    const given = told.findings ?? [];
    const placed = given.filter((one): one is Finding => typeof one === "object" && one !== null && "severity" in one);
    return new Problem(answer.status, told.code ?? "", told.message ?? answer.statusText, given.map(findingText), placed);
  } catch {
    return new Problem(answer.status, "", `The server answered ${answer.status} ${answer.statusText}.`);
  }
}

function findingText(finding: unknown): string {
  if (typeof finding === "string") return finding;
  const { message } = finding as { message?: unknown };
  return typeof message === "string" ? message : JSON.stringify(finding);
}
