"""Renders templates as a child process: `python -m tidewheel.formats.template_child MODULE`.

The process limits itself and then loads the module, whose ``answers`` does the work: nothing
that a template can reach is loaded before the limits hold. The job comes as JSON on stdin and
brings its limits; each answer goes as a line of JSON to stdout, before the next one is begun.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from importlib import import_module

_PR_SET_PDEATHSIG = 1
_FILE_LIMIT_FACTOR = 8  # JSON with an origin for each line is longer than the text


def limit_this_process(cpu_seconds: float, memory_bytes: int, output_bytes: int) -> None:
    """Sets limits that the kernel enforces, whatever Python code is running; the process ends
    with the one that asked, whose thread waits for it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    file_bytes = output_bytes * _FILE_LIMIT_FACTOR
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    whole_seconds = int(cpu_seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (whole_seconds, whole_seconds + 1))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)


def serve(module: str) -> None:
    """Answers the one job that this process was started for."""
    job = json.load(sys.stdin)
    limit_this_process(job["cpu_seconds"], job["memory_bytes"], job["output_bytes"])
    # Filters may print; only the answers belong on what was stdout.
    answer_descriptor = os.dup(1)
    os.dup2(2, 1)
    with open(answer_descriptor, "wb", buffering=0) as file:
        for answer in import_module(module).answers(job):
            file.write(json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    serve(sys.argv[1])
