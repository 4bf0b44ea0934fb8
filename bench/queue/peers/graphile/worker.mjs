// One worker process: waits at the gate, then counts each job on the shared scoreboard.
import fs from "node:fs";
import readline from "node:readline";
import { preset, run } from "./preset.mjs";

const [url, board, slot] = process.argv.slice(2);
const SLOT_BYTES = 24; // calls int64, first start float64, last start float64: see scoreboard.py
const file = fs.openSync(board, "r+");
const bytes = Buffer.alloc(SLOT_BYTES);
let calls = 0n;
let pending = false;

// node cannot map memory: it writes the slot once per turn of its event loop, not once per job.
function write() {
  pending = false;
  bytes.writeBigInt64LE(calls, 0);
  fs.writeSync(file, bytes, 0, SLOT_BYTES, Number(slot) * SLOT_BYTES);
}

async function noOp() {
  const now = Number(process.hrtime.bigint()) / 1e9;
  if (calls === 0n) bytes.writeDoubleLE(now, 8);
  calls += 1n;
  bytes.writeDoubleLE(now, 16);
  if (!pending) {
    pending = true;
    setImmediate(write);
  }
}

console.log("ready");
for await (const _ of readline.createInterface({ input: process.stdin })) break;
await run({ preset: preset(url), taskList: { no_op: noOp }, noHandleSignals: true });
