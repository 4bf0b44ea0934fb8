"""Run by the interpreter that has distributed: each task a function that runs a program.

``dask_seconds.py WORK FOLDER AT_ONCE``; WORK is a JSON list of tasks, each with its parents and
what it starts. Two worker processes share what runs at once, as threads. FOLDER/seconds gets
the time from the first submission to the last end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from distributed import Client, Future, LocalCluster, wait

PROCESSES = 2


def run_program(one: dict[str, Any], *_parents: None) -> None:
    with (
        open(one["out"] or os.devnull, "ab") as out,
        open(one["err"] or os.devnull, "ab") as err,
    ):
        environment = one["environment"] or None
        subprocess.run(one["argv"], env=environment, stdout=out, stderr=err, check=True)


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
        futures: list[Future] = []
        for one in json.loads(Path(work).read_text()):
            after = [futures[number] for number in one.pop("parents")]
            futures.append(client.submit(run_program, one, *after, pure=False))
        wait(futures)
        seconds = time.monotonic() - begin
        failed = sum(future.status != "finished" for future in futures)
    assert not failed, f"{failed} tasks failed"
    Path(folder, "seconds").write_text(str(seconds))


if __name__ == "__main__":
    main()
