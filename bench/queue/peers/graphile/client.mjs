// The submitting side: one command a line on stdin, one answer a line on stdout.
//   migrate             -> ok
//   enqueue COUNT BATCH -> seconds
//   submit              -> when the call began, in CLOCK_MONOTONIC seconds
import readline from "node:readline";
import { makeWorkerUtils, preset } from "./preset.mjs";

const utils = await makeWorkerUtils({ preset: preset(process.argv[2]) });
const now = () => Number(process.hrtime.bigint()) / 1e9;

async function enqueue(count, batch) {
  const began = now();
  for (let start = 0; start < count; start += batch) {
    const size = Math.min(batch, count - start);
    await utils.addJobs(Array.from({ length: size }, () => ({ identifier: "no_op", payload: {} })));
  }
  return now() - began;
}

async function submit() {
  const began = now();
  await utils.addJob("no_op", {});
  return began;
}

const commands = {
  migrate: async () => (await utils.migrate(), "ok"),
  enqueue: (count, batch) => enqueue(Number(count), Number(batch)),
  submit,
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const [name, ...values] = line.split(" ");
  console.log(String(await commands[name](...values)));
}
await utils.release();
