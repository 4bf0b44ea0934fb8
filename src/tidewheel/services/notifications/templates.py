"""Putting the facts of a message into a text: plain replacement of ``{field}``, nothing else.

In one pass, so that a name with braces in it is never read as a field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

FIELDS = (
    *("id", "event", "run", "workflow", "status", "reason", "at", "tasks", "count"),
    *("text", "rule", "store"),
)
_FIELD = re.compile(r"\{([a-z_]+)\}")


def unknown_fields(template: str) -> list[str]:
    """Those that no message has."""
    return [name for name in dict.fromkeys(_FIELD.findall(template)) if name not in FIELDS]


def filled(template: str, facts: Mapping[str, str]) -> str:
    """The template with its fields replaced; what is no field stays as it is."""
    return _FIELD.sub(lambda found: facts.get(found[1], found[0]), template)
