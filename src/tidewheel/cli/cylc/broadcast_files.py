"""Files of settings for `cylc broadcast --set-file`: sections and items as in flow.cylc."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tidewheel.cli.cylc.arguments import BadUsage

_SECTION = re.compile(r"(\[+)\s*([^\[\]]+?)\s*\]+")
_LONG = ('"""', "'''")


def read_settings_file(path: str) -> list[str]:
    """Each item as `[SECTION]ITEM=VALUE`; `-` is standard input."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
    except OSError as error:
        raise BadUsage(f"cylc broadcast: {path}: {error.strerror}") from None
    return list(_settings(text.splitlines()))


def _settings(lines: list[str]) -> Iterator[str]:
    sections: list[str] = []
    rest = iter(lines)
    for line in rest:
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        section = _SECTION.fullmatch(stripped)
        if section is not None:
            sections = [*sections[: len(section[1]) - 1], section[2]]
            continue
        item, equals, value = stripped.partition("=")
        if not equals:
            yield "".join(f"[{one}]" for one in sections) + item.strip()
            continue
        value = value.strip()
        quotes = value[:3]
        if quotes in _LONG and value.count(quotes) == 1:
            value = "\n".join([value, *_until(rest, quotes)])
        yield "".join(f"[{one}]" for one in sections) + f"{item.strip()}={value}"


def _until(lines: Iterator[str], quotes: str) -> Iterator[str]:
    for line in lines:
        yield line
        if quotes in line:
            return
