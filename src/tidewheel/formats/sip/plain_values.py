"""What a scalar means where no schema says so: YAML 1.2's core types, which are JSON's too."""

from __future__ import annotations

import math
import re

from tidewheel.formats.sip.document import Fields, Items, Node, Scalar
from tidewheel.formats.sip.limits import NUMBER_LENGTH_MAX
from tidewheel.formats.sip.places import Json

_NULL = re.compile(r"null|Null|NULL|~|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INTEGER = re.compile(r"[-+]?[0-9]+", re.ASCII)
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)


def plain_value(node: Node) -> Json:
    """A node as programs use it; quoted scalars are texts."""
    if isinstance(node, Items):
        return [plain_value(one) for one in node.items]
    if isinstance(node, Fields):
        return {entry.key.text: plain_value(entry.value) for entry in node}
    return node.text if node.quoted else _typed(node.text)


def is_null(node: Node) -> bool:
    """`key:`, `key: ~` and `key: null`."""
    return isinstance(node, Scalar) and not node.quoted and bool(_NULL.fullmatch(node.text))


def boolean(node: Node) -> bool | None:
    """True or false as YAML writes them; None for everything else."""
    text = node.text if isinstance(node, Scalar) else ""
    if _TRUE.fullmatch(text):
        return True
    return False if _FALSE.fullmatch(text) else None


def number(text: str) -> int | float | None:
    """A number of a reasonable length; None for everything else."""
    if len(text) > NUMBER_LENGTH_MAX:
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    if _OCTAL.fullmatch(text) or _HEXADECIMAL.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        found = float(text)
        return found if math.isfinite(found) else None
    return None


def _typed(text: str) -> Json:
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    found = number(text)
    return text if found is None else found
