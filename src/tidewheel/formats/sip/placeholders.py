"""Defines places: what a rendered template holds where it printed a value.

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
from dataclasses import replace
from typing import TypeAlias

from tidewheel.lazy_dataclasses import dataclass

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

# Private use: YAML and JSON take them for letters, and nobody writes them.
OPEN = "\U000f5ee0"
CLOSE = "\U000f5ee1"
PLACE = re.compile(f"{OPEN}(\\d+){CLOSE}")
RESERVED = re.compile(f"[{OPEN}{CLOSE}]")


@dataclass(frozen=True, slots=True)
class PrintedValue:
    """Holds what a template printed; people read ``unknown`` where there is no value yet."""

    value: Json = None
    unknown: str = ""

    @property
    def text(self) -> str:
        """Returns the text that is put in its place."""
        return self.unknown or text_of_value(self.value)

    def for_compose(self) -> PrintedValue:
        """Returns the value with `$$` for `$`, which begins a variable in a compose file."""
        return replace(self, value=_with_plain_dollars(self.value))


def _with_plain_dollars(value: Json) -> Json:
    match value:
        case str():
            return value.replace("$", "$$")
        case list():
            return [_with_plain_dollars(one) for one in value]
        case dict():
            return {
                key.replace("$", "$$"): _with_plain_dollars(one) for key, one in value.items()
            }
        case _:
            return value


def text_of_value(value: Json) -> str:
    """Returns texts as they are, all else as compact JSON: `true`, `null`, `{"a":1}`.

    While a template is rendered, a name in a structure may have no value: then the text that it
    prints is taken.
    """
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)


def parameter_to_come(name: str) -> str:
    """Returns the text for a parameter that a request will bring, as templates write it."""
    return f"{{{{ {name} }}}}"


def parameter_shown(text: str) -> str:
    """Returns the parameter for which such a text stands; "" if it is none."""
    found = _SHOWN.fullmatch(text)
    return found[1] if found is not None else ""


_SHOWN = re.compile(r"\{\{ (.+) \}\}")


def output_to_come(stage: str, name: str) -> str:
    """Returns the text for a value that an earlier stage will make."""
    return f"<output of {stage}: {name}>"


def place(number: int) -> str:
    return f"{OPEN}{number}{CLOSE}"
