"""Run by the interpreter that has hyperqueue: tasks of ``true``, a server and a worker here.

``hyperqueue_seconds.py WORK FOLDER AT_ONCE``; WORK is a JSON list of each task's parents. The
the seconds from the submission of the job to its end.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig


def main() -> None:
    work, folder, at_once = sys.argv[1:]
    job = Job(default_workdir=Path(folder) / "hq-work")
    tasks = []
    for parents in json.loads(Path(work).read_text()):
        tasks.append(job.program(["true"], deps=[tasks[number] for number in parents]))
    with LocalCluster(str(Path(folder) / "hq"), WorkerConfig(cores=int(at_once))) as cluster:
        client = cluster.client()
        begin = time.monotonic()
        client.wait_for_jobs([client.submit(job)])
        seconds = time.monotonic() - begin
    Path(folder, "seconds").write_text(str(seconds))


if __name__ == "__main__":
    main()
