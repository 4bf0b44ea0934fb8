"""Run by the interpreter that has distributed: each task a function that runs a program.

``dask_seconds.py WORK FOLDER AT_ONCE``; WORK is a JSON list of tasks, each with its parents and
what it starts. Two worker processes share what runs at once, as threads. FOLDER/seconds gets the
time from the first submission to the last end.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from distributed import Client, LocalCluster, wait

PROCESSES = 2


def run_program(one: dict[str, object], *_parents: None) -> None:
    with ExitStack() as stack:
        streams = {}
        if one["out"]:
            names = (("stdout", one["out"]), ("stderr", one["err"]))
            streams = {name: stack.enter_context(open(path, "ab")) for name, path in names}
        subprocess.run(one["argv"], env=one["environment"] or None, check=True, **streams)


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
