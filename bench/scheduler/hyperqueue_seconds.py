"""Run by the interpreter that has hyperqueue: a server and a worker here, programs as tasks.

``hyperqueue_seconds.py WORK FOLDER AT_ONCE``; WORK is a JSON list of tasks, each with its parents
and what it starts. FOLDER/seconds gets the time from the submission of the job to its end.
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
    for one in json.loads(Path(work).read_text()):
        logs = {"stdout": one["out"], "stderr": one["err"]} if one["out"] else {}
        after = [tasks[number] for number in one["parents"]]
        tasks.append(job.program(one["argv"], env=one["environment"], deps=after, **logs))
    with LocalCluster(f"{folder}/hq", WorkerConfig(cores=int(at_once))) as cluster:
        client = cluster.client()
        begin = time.monotonic()
        client.wait_for_jobs([client.submit(job)])
        seconds = time.monotonic() - begin
    Path(folder, "seconds").write_text(str(seconds))


if __name__ == "__main__":
    main()
