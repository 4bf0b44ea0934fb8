import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { get, getBytes, post, Problem } from "./http";

let dying: Server;

/** A real server, which is gone after the first bytes of each answer. */
beforeEach(async () => {
  dying = createServer((_, answer) => {
    answer.writeHead(200, { "Content-Length": "1000" });
    answer.write('{"be', () => answer.destroy());
  });
  await new Promise<void>((ready) => { dying.listen(0, "127.0.0.1", ready); });
  const { port } = dying.address() as AddressInfo;
  const real = globalThis.fetch;
  vi.stubGlobal("fetch", (path: string, options: RequestInit) => real(`http://127.0.0.1:${port}${path}`, options));
});
afterEach(() => {
  vi.unstubAllGlobals();
  dying.close();
});

const problemOf = async (asked: Promise<unknown>): Promise<unknown> => asked.then(() => "no problem", (error: unknown) => error);

test.each([["a view", () => get("/runs")], ["a log", () => getBytes("/runs/a/log")]])("%s whose server dies while it answers is asked for again", async (_, ask) => {
  const problem = await problemOf(ask());
  expect(problem).toBeInstanceOf(Problem);
  expect((problem as Problem).passes).toBe(true);
});

test("a command whose server dies while it answers may have been done", async () => {
  expect(((await problemOf(post("/runs/a/pause"))) as Problem).message).toContain("not known whether the action was carried out");
});
