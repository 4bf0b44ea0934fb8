"""A compose file as engines take it: what a value is follows from its key, not from YAML.

Engines refuse `version: 3.7`, `command: [run, 4]` and `environment: {DEBUG: true}`, since YAML
makes numbers and flags of them, and take 1.10 for 1.1; a template prints such values all the
time. A structure that a template prints as a command is one word of it: `command: {{ args }}`
means what `command: ['{{ args }}']` says, in quotes or not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from tidewheel.formats.sip.document import Fields, Items, Node, Scalar
from tidewheel.formats.sip.places import text_of_value
from tidewheel.formats.sip.plain_values import is_null, plain_value

WORDS_KEYS = ("command", "entrypoint")  # a text, or a list of words
_TEXT_KEYS = (
    *("container_name", "hostname", "image", "platform", "restart", "stop_signal"),
    *("user", "working_dir"),
)
_TEXTS_KEYS = ("environment", "labels")  # texts by name, or a list of them

_Change = Callable[[Node], Node]


def typed_compose(root: Node) -> Node:
    """With texts wherever engines want texts."""
    root = _changed(root, "version", _text)
    return _changed(root, "services", lambda services: _each(services, _service))


def _service(node: Node) -> Node:
    for key in WORDS_KEYS:
        node = _changed(node, key, _words)
    for key in _TEXT_KEYS:
        node = _changed(node, key, _text)
    for key in _TEXTS_KEYS:
        node = _changed(node, key, lambda found: _each(found, _told))
    return _changed(node, "deploy", _deploy)


def _deploy(node: Node) -> Node:
    return _changed(node, "labels", lambda found: _each(found, _told))


def _words(node: Node) -> Node:
    if isinstance(node, Fields) or is_printed_json(node):
        return Items((_word(node),), node.position)
    return _each(node, _word) if isinstance(node, Items) else _text(node)


def is_printed_json(node: Node) -> bool:
    """`command: '{{ args }}'`: a text of JSON and nothing else, which engines would split."""
    if not isinstance(node, Scalar) or not node.printed or node.text[:1] not in ("{", "["):
        return False
    try:
        json.loads(node.text)
    except (ValueError, RecursionError):
        return False
    return True


def _word(node: Node) -> Node:
    if isinstance(node, Scalar):
        return replace(node, quoted=True)  # there is no empty place between words
    return Scalar(text_of_value(plain_value(node)), True, node.position)


def _told(node: Node) -> Node:
    """Whoever writes `SITE: {{ site }}` gives a value, an empty one too; `SITE:` gives none."""
    if isinstance(node, Scalar) and node.printed:
        return replace(node, quoted=True)
    return _text(node)


def _text(node: Node) -> Node:
    """Nothing stays nothing: to an engine an empty text is a value."""
    return node if not isinstance(node, Scalar) or is_null(node) else replace(node, quoted=True)


def _changed(node: Node, key: str, change: _Change) -> Node:
    """A mapping with the value of one key changed."""
    if not isinstance(node, Fields):
        return node
    entries = (
        entry._replace(value=change(entry.value)) if entry.key.text == key else entry
        for entry in node
    )
    return replace(node, entries=tuple(entries))


def _each(node: Node, change: _Change) -> Node:
    """A mapping or list with all of its values changed."""
    if isinstance(node, Items):
        return replace(node, items=tuple(map(change, node.items)))
    if isinstance(node, Fields):
        return replace(
            node, entries=tuple(entry._replace(value=change(entry.value)) for entry in node)
        )
    return node
