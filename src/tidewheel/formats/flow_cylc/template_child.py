"""The child process that renders a template: `python -m` this module, a job on stdin.

It limits itself first, then loads Jinja2, renders, and writes one JSON object. The sandbox is
not the immutable one: `{% do list.append(x) %}` is everyday Cylc, and what a template changes
dies with this process.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from tidewheel.formats.flow_cylc.template_variables import ALL_VARIABLES
from tidewheel.formats.template_child import serve

if TYPE_CHECKING:
    from tidewheel.formats.flow_cylc.template_environment import FlowEnvironment


def answer_job(job: dict[str, Any]) -> dict[str, object]:
    """Lines and origins, or why there are none."""
    from tidewheel.formats.flow_cylc.template_environment import (  # noqa: PLC0415 - limits first
        FlowEnvironment,
    )

    environment = FlowEnvironment(job["folder"], job["code_trusted"])
    variables = {name: ast.literal_eval(text) for name, text in job["variables"].items()}
    variables[ALL_VARIABLES] = variables
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
    return {
        "lines": text.split("\n"),
        "origins": origins,
        "files": environment.files,
        "names": sorted(environment.names),
    }


if __name__ == "__main__":
    serve(answer_job)
