// The fastest configuration in graphile-worker's own documentation ("Performance", quick stats).
import { createRequire } from "node:module";

// The packages live in the bench's build folder, not beside this file.
const require = createRequire(`${process.env.BENCH_NODE}/package.json`);
export const { run, makeWorkerUtils, Logger } = require("graphile-worker");

const quiet = new Logger(() => (level, message) => {
  if (level === "error") console.error(message);
});

export const preset = (connectionString) => ({
  worker: {
    connectionString,
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    logger: quiet,
  },
});
