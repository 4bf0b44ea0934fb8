"""Advice in the notation of the file that it is about: what is copied from it can be read."""

from __future__ import annotations

import json

from tidewheel.core.graph.findings import Position
from tidewheel.formats.sip.places import Json
from tidewheel.formats.sip.text_files import JSON_SUFFIX, file_name


def pair(name: str, value: Json, where: Position) -> str:
    """A key and its value: `timeout: 60s`, or `"timeout": "60s"`."""
    key = json.dumps(name) if _is_json(where) else name
    return f"{key}: {written(value, where)}"


def entry(value: Json, where: Position) -> str:
    """An entry of a list: `- {type: cpu}`, or `{"type": "cpu"}`."""
    return ("" if _is_json(where) else "- ") + written(value, where)


def written(value: Json, where: Position) -> str:
    if _is_json(where):
        return json.dumps(value, ensure_ascii=False)
    return _flow(value)


def _is_json(where: Position) -> bool:
    return file_name(where.file).suffix == JSON_SUFFIX


def _flow(value: Json) -> str:
    """YAML in one line; texts of ours need no quotes."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_flow(one)}' for name, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return value if isinstance(value, str) else json.dumps(value)
