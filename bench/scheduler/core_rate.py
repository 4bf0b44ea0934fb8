"""``python -m bench.scheduler.core_rate FLOW``: completions per second of the core alone.

Every submission is ended at once; no store, no clock, no services. Prints completions and the
processor seconds of the best of some rounds.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from pathlib import Path

from bench.scheduler.one_process import read_flow
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.definition import RunOptions
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.events import JobEnd, JobEnded, RunStarted, Submit
from tidewheel.core.sched.pool import RunStatus
from tidewheel.core.sched.step import new_pool, step
from tidewheel.wiring.machine import spare_garbage_collector

ROUNDS = 3
NOW = Instant(0.0)


def complete(graph: Graph) -> tuple[int, float]:
    """Completions, and the processor seconds they took."""
    pool = new_pool(graph)
    todo = deque(step(graph, pool, RunStarted(NOW)).effects)
    begin = time.process_time()  # the start looks at every node once; it completes none
    completions = 0
    while todo:
        one = todo.popleft()
        if type(one) is Submit:
            completions += 1
            ended = JobEnded(one.task, one.submit, JobEnd.SUCCEEDED, NOW)
            todo.extend(step(graph, pool, ended).effects)
    seconds = time.process_time() - begin
    assert pool.run.status is RunStatus.COMPLETED, pool.run.status
    return completions, seconds


def main() -> None:
    loaded = read_flow(Path(sys.argv[1]), RunOptions(now=0.0))
    assert loaded.graph is not None
    spare_garbage_collector()  # as every process of ours does
    best = min((complete(loaded.graph) for _ in range(ROUNDS)), key=lambda one: one[1])
    sys.stdout.write(json.dumps(best))


if __name__ == "__main__":
    main()
