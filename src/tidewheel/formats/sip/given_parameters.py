"""The parameters of a request as people give them: `-p NAME=VALUE`, and a JSON or YAML file.

A value is JSON if it can be read as such, else a text: `4`, `true`, `[1, 2]`, `north`. A
version such as `1.10` that must stay a text is quoted: `'"1.10"'`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tidewheel.core.graph.findings import Findings, InvalidDefinition, Position
from tidewheel.errors import BadSetting
from tidewheel.formats.sip.document import Fields
from tidewheel.formats.sip.limits import PARAMETERS_BYTES_MAX
from tidewheel.formats.sip.places import Json
from tidewheel.formats.sip.plain_values import plain_value
from tidewheel.formats.sip.text_files import decoded, read_plain

PAIR_ACCEPTED = "NAME=VALUE, the value as JSON or a text: -p nodes=4 -p site=north"


def read_parameters(texts: Iterable[str], file: Path | None) -> dict[str, object]:
    """Values by name; single ones count more than the file."""
    found: dict[str, object] = {} if file is None else dict(_from_file(file))
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise BadSetting("parameter", text, PAIR_ACCEPTED)
        found[name.strip()] = _value(value)
    return found


def _value(text: str) -> object:
    try:
        return json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text


def _from_file(path: Path) -> dict[str, Json]:
    findings = Findings()
    name = str(path)
    try:
        with path.open("rb") as opened:
            content = opened.read(PARAMETERS_BYTES_MAX * 4 + 1)
    except OSError as error:
        raise BadSetting(
            "parameters", str(path), f"a JSON or YAML file that can be read ({error.strerror})"
        ) from error
    text = decoded(name, content, findings)
    node = read_plain(name, text, findings) if text is not None else None
    if node is not None and not isinstance(node, Fields):
        findings.error(
            "parameters-kind",
            f"{name} is no mapping of names to values",
            "write name: value, one in a line",
            Position(name, 1),
        )
    if findings.has_errors or not isinstance(node, Fields):
        raise InvalidDefinition(name, findings.sorted())
    value = plain_value(node)
    assert isinstance(value, dict)
    return value
