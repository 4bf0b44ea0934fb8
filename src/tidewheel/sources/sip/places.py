"""Places: what a rendered template holds where it printed a value.

Theory of operation. A template prints `{{ number }}` as a place, two signs with a number
between them, and keeps the value beside. The text is parsed with its places in it; they are
letters like any other to YAML and JSON, so that each ends up within one scalar or key, whatever
its value is. Then the values are put in: a line break in a value begins no new stage, an
apostrophe closes no quote. (RELIABILITY S16)

Both sides need these: the child that renders and the reader of what it rendered.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

# Private use: YAML and JSON take them for letters, and nobody writes them.
OPEN = "\U000f5ee0"
CLOSE = "\U000f5ee1"
PLACE = re.compile(f"{OPEN}(\\d+){CLOSE}")
RESERVED = re.compile(f"[{OPEN}{CLOSE}]")


@dataclass(frozen=True, slots=True)
class Value:
    """What a template printed; ``unknown`` names a parameter without a value."""

    value: Json = None
    unknown: str = ""

    @property
    def text(self) -> str:
        """What stands in its place; the name, as templates write it, where it is unknown."""
        return f"{{{{ {self.unknown} }}}}" if self.unknown else text_of_value(self.value)


def text_of_value(value: Json) -> str:
    """Texts as they are, everything else as compact JSON: `true`, `null`, `{"a":1}`."""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def place(number: int) -> str:
    return f"{OPEN}{number}{CLOSE}"
