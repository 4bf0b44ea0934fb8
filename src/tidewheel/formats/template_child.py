"""Serves one job of rendering templates: limits the process, then answers.

The job comes as JSON on stdin and brings its limits; the answer goes as JSON to stdout. Nothing
that a template can reach is loaded before the limits hold.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_FILE_LIMIT_FACTOR = 8  # JSON with an origin for each line is longer than the text


def limit_this_process(cpu_seconds: float, memory_bytes: int, output_bytes: int) -> None:
    """Sets limits that the kernel enforces, whatever Python code is running."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    file_bytes = output_bytes * _FILE_LIMIT_FACTOR
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    whole_seconds = int(cpu_seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (whole_seconds, whole_seconds + 1))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)


def serve(answer_job: Callable[[dict[str, Any]], Mapping[str, object]]) -> None:
    """Gives one answer to one job."""
    serve_lines(lambda job: [answer_job(job)])


def serve_lines(answers: Callable[[dict[str, Any]], Iterable[Mapping[str, object]]]) -> None:
    """Gives several answers, each a line that is written before the next one is begun."""
    job = json.load(sys.stdin)
    limit_this_process(job["cpu_seconds"], job["memory_bytes"], job["output_bytes"])
    # Filters may print; only the answer belongs on what was stdout.
    answer_descriptor = os.dup(1)
    os.dup2(2, 1)
    with open(answer_descriptor, "wb", buffering=0) as file:
        for answer in answers(job):
            file.write(json.dumps(answer).encode() + b"\n")
