"""The child process that renders the templates of a SIP definition, many in one go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tidewheel.formats.template_child import serve_lines

if TYPE_CHECKING:
    from tidewheel.formats.sip.template_environment import SipEnvironment


def answers(job: dict[str, Any]) -> Iterator[dict[str, object]]:
    """Yields an answer for each template: lines, origins and values, or why there are none."""
    from tidewheel.formats.sip.template_environment import (  # noqa: PLC0415 - limits first
        SipEnvironment,
        wrapped,
    )

    environment = SipEnvironment(job["moment"])
    # Once for all of them: no template can change it, and it knows every stage.
    job["shared"] = {name: wrapped(value) for name, value in job["shared"].items()}
    _put_unknown(job["shared"], job["unknown"])
    for template in job["templates"]:
        yield _answer(environment, job, template)


def _answer(
    environment: SipEnvironment, job: dict[str, Any], template: dict[str, Any]
) -> dict[str, object]:
    text = template["text"]
    variables = {**job["shared"], **_own(template["own"], template["unknown"])}
    try:
        names = environment.names_in(text)
        rendered, origins = environment.render_traced(text, variables)
    except MemoryError:
        environment.cache = None  # room for the answer
        return {
            "code": "template-too-large",
            "message": "rendering needs more than "
            f"{job['memory_bytes'] // 1024**2} MiB of memory",
            "hint": "look for a text or list that grows in a loop",
        }
    except Exception as error:  # whatever a template raises is a finding
        return environment.failure(error, text, variables)
    size = len(rendered) + len(json.dumps(environment.values))
    if size > job["output_bytes"]:
        return {
            "code": "template-too-large",
            "message": f"the template renders to more than {job['output_bytes']} bytes",
            "hint": "look for a loop that is too large",
        }
    return {
        "lines": rendered.split("\n"),
        "origins": [line for _, line in origins],
        "values": list(environment.values),
        "names": names,
    }


def _own(own: dict[str, Any], unknown: list[tuple[list[str | int], str]]) -> dict[str, object]:
    """Returns names with their values."""
    from tidewheel.formats.sip.template_environment import (  # noqa: PLC0415 - limits first
        TemplateParameters,
        wrapped,
    )

    variables: dict[str, object] = {name: wrapped(value) for name, value in own.items()}
    known = variables.get("parameters")
    variables["parameters"] = TemplateParameters(known if isinstance(known, dict) else {})
    _put_unknown(variables, unknown)
    return variables


def _put_unknown(variables: dict[str, Any], unknown: list[tuple[list[str | int], str]]) -> None:
    """Each path leads to a name that has no value yet."""
    from tidewheel.formats.sip.template_environment import Unknown  # noqa: PLC0415 - limits first

    for path, shown in unknown:
        inner: Any = variables
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = Unknown(name=shown)


if __name__ == "__main__":
    serve_lines(answers)
