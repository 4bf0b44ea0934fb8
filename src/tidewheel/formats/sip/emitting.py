"""Nodes as YAML again: what an engine reads has exactly the structure that was checked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from tidewheel.formats.sip.document import Fields, Items, Node, Scalar
from tidewheel.formats.sip.plain_values import is_null

# What is one word to every reader of YAML; everything else is put in quotes.
_PLAIN = re.compile(r"[A-Za-z0-9_./+][A-Za-z0-9_./+@%=-]*|-?[0-9][0-9.eE+-]*", re.ASCII)
# Fine in JSON, but line breaks or refused in YAML.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_INDENT = "  "


def emit_yaml(node: Node) -> str:
    """Block style; scalars that were plain stay plain where that is safe."""
    if isinstance(node, Scalar):
        return _scalar(node) + "\n"
    return "\n".join(_lines(node, "")) + "\n"


def _lines(node: Items | Fields, lead: str) -> Iterator[str]:
    if isinstance(node, Items):
        heads = [("-", item) for item in node.items]
    else:
        heads = [(f"{_scalar(key)}:", value) for key, value in node.entries]
    if not heads:
        yield lead + ("[]" if isinstance(node, Items) else "{}")
    for head, value in heads:
        if isinstance(value, Scalar):
            yield f"{lead}{head} {_scalar(value)}"
        elif not (value.items if isinstance(value, Items) else value.entries):
            yield f"{lead}{head} {'[]' if isinstance(value, Items) else '{}'}"
        else:
            yield f"{lead}{head}"
            yield from _lines(value, lead + _INDENT)


def _scalar(node: Scalar) -> str:
    if is_null(node):
        return "null"
    if not node.quoted and _PLAIN.fullmatch(node.text):
        return node.text
    return quoted(node.text)


def quoted(text: str) -> str:
    """In double quotes, with escapes that JSON and YAML share."""
    return _ESCAPED.sub(
        lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False)
    )
