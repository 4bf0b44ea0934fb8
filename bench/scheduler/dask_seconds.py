"""Run by the interpreter that has distributed: each task a function that runs ``true``.

``dask_seconds.py WORK FOLDER AT_ONCE``; WORK is a JSON list of each task's parents. Two worker
processes, the tasks that run at once shared between them as threads. The seconds from the
first submission to the last end.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from distributed import Client, LocalCluster, wait

PROCESSES = 2


def run_true(*_parents: None) -> None:
    subprocess.run(["true"], check=True)


def main() -> None:
    work, folder, at_once = sys.argv[1:]
    threads = max(1, int(at_once) // PROCESSES)
    cluster = LocalCluster(
        n_workers=PROCESSES,
        threads_per_worker=threads,
        processes=True,
        dashboard_address=None,
        local_directory=folder,
    )
    with cluster, Client(cluster) as client:
        client.wait_for_workers(PROCESSES)
        begin = time.monotonic()
        futures = []
        for parents in json.loads(Path(work).read_text()):
            after = [futures[number] for number in parents]
            futures.append(client.submit(run_true, *after, pure=False))
        wait(futures)
        seconds = time.monotonic() - begin
    Path(folder, "seconds").write_text(str(seconds))


if __name__ == "__main__":
    main()
