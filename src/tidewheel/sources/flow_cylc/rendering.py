"""The child process that renders a template: `python -m` this module, a job on stdin.

It limits itself first, then loads Jinja2, renders, and writes one JSON object. The sandbox is
not the immutable one: `{% do list.append(x) %}` is everyday Cylc, and what a template changes
dies with this process.
"""

from __future__ import annotations

import ast
import json
import os
import resource
import signal
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidewheel.sources.flow_cylc.rendering_environment import FlowEnvironment

_FILE_LIMIT_FACTOR = 8  # JSON with an origin for each line is longer than the text


def limit_this_process(cpu_seconds: float, memory_bytes: int, output_bytes: int) -> None:
    """The kernel ends or refuses whatever goes beyond; no Python code has to be reached."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    file_bytes = output_bytes * _FILE_LIMIT_FACTOR
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    whole_seconds = int(cpu_seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (whole_seconds, whole_seconds + 1))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)


def answer_job(job: dict[str, Any]) -> dict[str, object]:
    """Lines and origins, or why there are none."""
    from tidewheel.sources.flow_cylc.rendering_environment import (  # noqa: PLC0415 - limits first
        FlowEnvironment,
    )

    environment = FlowEnvironment(job["folder"], job["code_trusted"])
    variables = {name: ast.literal_eval(text) for name, text in job["variables"].items()}
    variables["CYLC_TEMPLATE_VARS"] = variables
    environment.globals.update(job["names"])
    try:
        environment.load_custom_code()
        return _rendered(environment, job, variables)
    except MemoryError:
        environment.cache = None  # room for the answer
        return {
            "code": "template-too-large",
            "message": "rendering needs more than "
            f"{job['memory_bytes'] // 1024**2} MiB of memory",
            "hint": "look for a text or list that grows in a loop",
        }
    except Exception as error:  # whatever a template or its filters raise is a finding
        return environment.failure(error, variables)


def _rendered(
    environment: FlowEnvironment, job: dict[str, Any], variables: dict[str, object]
) -> dict[str, object]:
    text, origins = environment.render_traced(job["text"], variables)
    if len(text) > job["output_bytes"]:
        return {
            "code": "template-too-large",
            "message": f"the template renders to more than {job['output_bytes']} bytes",
            "hint": "look for a loop that is too large",
        }
    if "\0" in text:
        return {"code": "not-text", "message": "the template renders to a NUL character"}
    return {"lines": text.split("\n"), "origins": origins, "files": environment.files}


def main() -> None:
    job = json.load(sys.stdin)
    limit_this_process(job["cpu_seconds"], job["memory_bytes"], job["output_bytes"])
    # Filters may print; only the answer belongs on what was stdout.
    answer_descriptor = os.dup(1)
    os.dup2(2, 1)
    answer = json.dumps(answer_job(job)).encode()
    with open(answer_descriptor, "wb") as file:
        file.write(answer)


if __name__ == "__main__":
    main()
