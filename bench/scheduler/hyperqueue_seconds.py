"""Run by the interpreter that has hyperqueue: a server and a worker here, programs as tasks.

``hyperqueue_seconds.py WORK FOLDER AT_ONCE``; WORK is a JSON list of tasks, each with its
parents and what it starts. FOLDER/seconds gets the time from the submission of the job to the
start of its last task, by the files that tasks print into: the client learns of the end only
once a second.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

NANOSECONDS = 1e9


def main() -> None:
    work, folder, at_once = sys.argv[1:]
    logs = Path(folder, "logs")
    logs.mkdir()
    job = Job(default_workdir=Path(folder) / "hq-work")
    tasks: list[Any] = []
    outs = []
    for number, one in enumerate(json.loads(Path(work).read_text())):
        out = one["out"] or str(logs / f"{number}.out")
        streams = {"stdout": out, "stderr": one["err"] or str(logs / f"{number}.err")}
        after = [tasks[parent] for parent in one["parents"]]
        tasks.append(job.program(one["argv"], env=one["environment"], deps=after, **streams))
        outs.append(Path(out))
    with LocalCluster(f"{folder}/hq", WorkerConfig(cores=int(at_once))) as cluster:
        client = cluster.client()
        begin = time.time_ns()
        client.wait_for_jobs([client.submit(job)])
    end = max(out.stat().st_mtime_ns for out in outs)
    Path(folder, "seconds").write_text(str((end - begin) / NANOSECONDS))


if __name__ == "__main__":
    main()
