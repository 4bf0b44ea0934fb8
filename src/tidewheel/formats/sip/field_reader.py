"""Reads one mapping of a definition by the table of its keys.

Whatever is wrong with a key or a value becomes a finding; the reader goes on with the next one.
An unknown value (a parameter that the request will bring) is right for every kind.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from tidewheel.core.graph.findings import Findings, Position, nearest
from tidewheel.errors import BadSetting
from tidewheel.formats.sip.document import (
    KINDS,
    Entry,
    Fields,
    Items,
    Node,
    Scalar,
    boolean,
    is_null,
    number,
    plain_value,
)
from tidewheel.formats.sip.keys import FORMER_KEYS, RESERVED_KEYS, Absent, Key, KeyKind, owners
from tidewheel.formats.sip.model import (
    NAME_LENGTH_MAX,
    NUMBER_MAX,
    SIZE_BYTES_MAX,
    TIMEOUT_SECONDS_MAX,
)
from tidewheel.formats.sip.placeholders import Json
from tidewheel.formats.sip.text_files import JSON_SUFFIX, file_name
from tidewheel.quantities import parse_duration, parse_size

# Hints are written in the notation of their file, JSON or YAML, so that they can be copied.


def pair(name: str, value: Json, where: Position) -> str:
    """Returns a key and its value as its file writes them: `timeout: 60s`.

    In JSON that is `"timeout": "60s"`.
    """
    key = json.dumps(name) if _is_json(where) else name
    return f"{key}: {written(value, where)}"


def entry(value: Json, where: Position) -> str:
    """Returns an entry of a list as its file writes it: `- {type: cpu}`.

    In JSON that is `{"type": "cpu"}`.
    """
    return ("" if _is_json(where) else "- ") + written(value, where)


def written(value: Json, where: Position) -> str:
    if _is_json(where):
        return json.dumps(value, ensure_ascii=False)
    return _flow(value)


def _is_json(where: Position) -> bool:
    return file_name(where.file).suffix == JSON_SUFFIX


def _flow(value: Json) -> str:
    """Returns a value as YAML in one line; the texts of our hints need no quotes."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_flow(one)}' for name, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return value if isinstance(value, str) else json.dumps(value)


_SHOWN_MAX = 60
_Made = TypeVar("_Made")


def refuse_entry(
    item: Node, what: str, example: Mapping[str, Json], findings: Findings
) -> None:
    """Reports an entry of a list that is no mapping."""
    hint = f"write {entry(dict(example), item.position)}"
    findings.error("entry-kind", f"{what} is {KINDS[type(item)]}", hint, item.position)


def report_second(
    kind: str, name: str, first: Position, here: Position, findings: Findings
) -> None:
    """Reports a second entry of a list with the same id."""
    seen = f"a second {kind} is called {name!r}; the first is in line {first.line}"
    findings.error(f"duplicate-{kind}", seen, f"give each {kind} a different id", here)


def shown_as(kind: str, item: Fields, otherwise: str) -> str:
    """Returns what findings call an entry of a list: by its id, else ``otherwise``."""
    named = item.get("id")
    return f"{kind} {named.text}" if isinstance(named, Scalar) and named.text else otherwise


class FieldReader:
    """Reads the values of one mapping by their keys."""

    def __init__(
        self, fields: Fields, keys: Mapping[str, Key], what: str, findings: Findings
    ) -> None:
        self._keys = keys
        self.what = what
        self._findings = findings
        self.position = fields.position
        self._entries = self._known(fields)

    def position_of(self, name: str) -> Position:
        entry = self._entries.get(name)
        return self.position if entry is None else entry.value.position

    def node(self, name: str) -> Node | None:
        """Returns the value of a key, or None; reports a key that should not be absent."""
        key, entry = self._keys[name], self._entries.get(name)
        if entry is not None:
            return entry.value
        example = key.kind.example if key.example is None else key.example
        advice = f"write {pair(name, example, self.position)} ({key.about})"
        if len(key.choices) == 1:
            advice = f"write {pair(name, key.choices[0], self.position)}"
        elif key.choices:
            advice = f"write {name} with one of {', '.join(key.choices)}"
        if key.absent is Absent.REFUSED:
            self._findings.error(
                "missing-key", f"{self.what} has no {name}", advice, self.position
            )
        elif key.absent is Absent.WARNED:
            seen = f"{self.what} has no {name}"
            self._findings.warning(f"no-{name.partition('_')[0]}", seen, advice, self.position)
        return None

    def scalar(self, name: str) -> Scalar | None:
        node = self.node(name)
        if node is None:
            return None
        if not isinstance(node, Scalar):
            self._mismatch(name, f"is {KINDS[type(node)]}", node.position)
            return None
        if is_null(node) and not node.unknown:
            self._mismatch(name, "is empty", node.position)
            return None
        return node

    def known(self, name: str) -> Scalar | None:
        """Returns a scalar with a value; None if it is absent, refused or to come."""
        found = self.scalar(name)
        return None if found is None or found.unknown else found

    def value(self, name: str) -> Any:  # noqa: ANN401 - as its kind has it
        """Returns the value of a key, typed by its kind; None if absent, refused or to come."""
        found, read = self.known(name), _READ.get(self._keys[name].kind, FieldReader._text)
        return None if found is None else read(self, name, found)

    def filled(self, made: type[_Made]) -> _Made:
        """Returns an object of the model with the values of keys in their fields.

        A key without a value leaves the default.
        """
        said = {key.to: self.value(name) for name, key in self._keys.items() if key.to}
        return made(**{name: value for name, value in said.items() if value is not None})

    def text(self, name: str) -> str | None:
        """Returns a text; None if absent, refused or to come.

        It is one of the choices if the key has any.
        """
        found = self.known(name)
        return None if found is None else self._text(name, found)

    def _text(self, name: str, found: Scalar) -> str | None:
        if len(found.text) > NAME_LENGTH_MAX:
            self._mismatch(name, f"has {len(found.text)} characters", found.position)
            return None
        key = self._keys[name]
        choices = () if key.read_apart else key.choices
        return self._chosen(name, found, choices) if choices else found.text

    def choice(self, name: str, choices: tuple[str, ...]) -> str | None:
        """Returns a text that must be one of these; None if absent, refused or to come."""
        found = self.known(name)
        return None if found is None else self._chosen(name, found, choices)

    def _chosen(self, name: str, found: Scalar, choices: tuple[str, ...]) -> str | None:
        lower = found.text.lower()
        if found.text in choices:
            return found.text
        if right := self._keys[name].spellings.get(lower):
            self._tolerate("other-spelling", name, found, right)
            return right
        if lower in choices:
            self._tolerate("capital-letters", name, found, lower)
            return lower
        seen = f"{name} of {self.what} is {_shown(found.text)}"
        hint = guess(SYNONYMS.get(lower, lower), choices)
        self._findings.error(f"unknown-{name}", seen, hint, found.position)
        return None

    def _tolerate(self, code: str, name: str, found: Scalar, right: str) -> None:
        seen = f"{name} of {self.what} is {found.text!r}"
        self._findings.warning(code, seen, f"write {right}", found.position)

    def items(self, name: str) -> tuple[Node, ...]:
        node = self.node(name)
        if isinstance(node, Items):
            return node.items
        if node is not None and not (isinstance(node, Scalar) and node.unknown):
            self._not_a_collection(name, node)
        return ()

    def is_listed(self, name: str) -> bool:
        """Says whether nothing of a list is lost: it could be read, or need not be there."""
        entry = self._entries.get(name)
        if entry is None:
            return self._keys[name].absent is not Absent.REFUSED
        return isinstance(entry.value, Items) or self.is_unknown(name)

    def elements(self, name: str, parameter: str) -> Items | Scalar | None:
        """Returns a list, or the name of one; None if absent or refused.

        A text that a template printed is no name: values do not decide what stages wait for.
        ``parameter`` is the one that the template prints there, if any.
        """
        node = self.node(name)
        if node is None or isinstance(node, Items):
            return node
        is_text = isinstance(node, Scalar) and not is_null(node) and not node.printed
        if isinstance(node, Scalar) and (
            node.unknown or is_text or isinstance(node.structure, list)
        ):
            return node
        if parameter:
            self._refuse_parameter(name, node, parameter)
        else:
            self._not_a_collection(name, node)
        return None

    def _refuse_parameter(self, name: str, node: Node, parameter: str) -> None:
        """Reports a parameter that should be a list, in the words of the request."""
        value = plain_value(replace(node, quoted=False) if isinstance(node, Scalar) else node)
        if isinstance(node, Scalar) and node.structure is not None:
            value = node.structure
        given = "{…}" if isinstance(value, dict) else json.dumps(value)
        short = given if len(given) <= _SHOWN_MAX else "…"
        stage, _, own = parameter.rpartition(".")
        lists = [f"{own}=[{one}]" for one in (short, "…, …")]
        if stage:  # it is given to a stage alone
            lists = [f'{stage}={{"{own}": [{one}]}}' for one in (short, "…, …")]
        hint = f"give a list of this one element, -p '{lists[0]}', or of several, "
        if value is None:
            hint = "give a list, or [] for an empty one: "
        hint += f"-p '{lists[1]}', or the same in the parameters of a request"
        seen = f"{name} of {self.what} is {short}, the value of {parameter}: that is not a list"
        self._findings.error("value-kind", seen, hint, node.position)

    def texts(self, name: str, count_max: int) -> tuple[Scalar, ...]:
        """Returns the texts of a list, or the one that stands in its place.

        As for `elements`, what a template printed is none of them.
        """
        node = self.node(name)
        found = node.items if isinstance(node, Items) else () if node is None else (node,)
        if isinstance(node, Items) and not 0 < len(found) <= count_max:
            self._mismatch(name, f"has {len(found)} entries", node.position)
            return ()
        texts = []
        for one in found:
            is_written = isinstance(one, Scalar) and not one.unknown and not one.printed
            if isinstance(one, Scalar) and is_written and not is_null(one):
                texts.append(one)
            else:
                seen = "is empty" if is_null(one) else f"is {KINDS[type(one)]}"
                is_value = isinstance(one, Scalar) and not is_written
                self._mismatch(name, "is a parameter" if is_value else seen, one.position)
        return tuple(texts)

    def fields(self, name: str) -> Fields | None:
        """Returns the mapping under a key; None if absent or refused."""
        node = self.node(name)
        if node is not None and not isinstance(node, Fields):
            self._not_a_collection(name, node)
        return node if isinstance(node, Fields) else None

    def _not_a_collection(self, name: str, node: Node) -> None:
        seen = "is empty" if is_null(node) else f"is {KINDS[type(node)]}"
        self._mismatch(name, seen, node.position)

    def _measured(self, name: str, found: Scalar) -> float | None:
        kind = self._keys[name].kind
        parse, most, units = _MEASURES[kind]
        try:
            value = parse(found.text)
        except BadSetting:
            value = math.inf
        if value > most or (kind is KeyKind.DURATION and value <= 0):
            meant = _other_unit(found.text, units)
            self._mismatch(name, f"is {_shown(found.text)}", found.position, meant)
            return None
        return value

    def _number(self, name: str, found: Scalar) -> float | None:
        value = number(found.text)
        is_count = self._keys[name].kind is KeyKind.COUNT
        if value is None or not 0 < value <= NUMBER_MAX or (is_count and value != int(value)):
            self._mismatch(name, f"is {_shown(found.text)}", found.position)
            return None
        return int(value) if is_count else value

    def _flag(self, name: str, found: Scalar) -> bool | None:
        value = boolean(found)
        if value is None and (old := _OLD_FLAGS.get(found.text.lower())) is not None:
            self._tolerate("other-spelling", name, found, str(old).lower())
            return old
        if value is None:
            self._mismatch(name, f"is {_shown(found.text)}", found.position)
        return value

    def is_unknown(self, name: str) -> bool:
        entry = self._entries.get(name)
        return (
            entry is not None and isinstance(entry.value, Scalar) and bool(entry.value.unknown)
        )

    def _mismatch(self, name: str, seen: str, position: Position, meant: str = "") -> None:
        key = self._keys[name]
        accepted = f"expected {key.kind.accepted}"
        if key.choices:
            accepted = f"expected one of {', '.join(key.choices)}"
        elif key.example is not None:
            accepted += f", such as {written(key.example, self.position)}"
        is_free = key.absent is Absent.FINE or key.example is None
        if key.kind in (KeyKind.LIST, KeyKind.ELEMENTS, KeyKind.MAPPING) and is_free:
            nothing: Json = {} if key.kind is KeyKind.MAPPING else []
            accepted += f"; write {json.dumps(nothing)} if there is nothing"
        if meant:
            accepted = f"did you mean {meant}? E{accepted[1:]}"
        self._findings.error("value-kind", f"{name} of {self.what} {seen}", accepted, position)

    def _known(self, fields: Fields) -> dict[str, Entry]:
        spellings = {
            key.other_spelling: name for name, key in self._keys.items() if key.other_spelling
        }
        found: dict[str, Entry] = {}
        for entry in fields:
            written, name = entry.key.text, spellings.get(entry.key.text, entry.key.text)
            if name not in self._keys:
                self._report_unknown(entry.key)
            elif name in found:
                seen = f"{self.what} has both {found[name].key.text} and {written}"
                hint = f"they mean the same: keep {name}"
                self._findings.error("two-spellings", seen, hint, entry.key.position)
            else:
                if written != name:
                    seen = f"{self.what} has {written}"
                    hint = f"write {name}"
                    self._findings.warning("other-spelling", seen, hint, entry.key.position)
                found[name] = entry
        return found

    def _report_unknown(self, key: Scalar) -> None:
        if key.text in RESERVED_KEYS and "schema_version" in self._keys:
            message, hint = RESERVED_KEYS[key.text]
            self._findings.error("reserved-key", message, hint, key.position)
            return
        seen, hint = "which is unknown", self._advice(key.text)
        beside, instead = FORMER_KEYS.get(key.text, ("", ""))
        if beside in self._keys:
            seen, hint = "which belongs to an earlier version of the format", instead
        said = f"{self.what} has the key {_shown(key.text)}, {seen}"
        self._findings.error("unknown-key", said, hint, key.position)

    def _advice(self, key: str) -> str:
        """Returns what was probably meant by an unknown key: another key, or another place."""
        if key == "<<":
            return "YAML merge keys are not accepted: write each key"
        lower, known = key.lower(), tuple(self._keys)
        if (others := owners(key, self._keys)) and SYNONYMS.get(lower) not in known:
            return f"it belongs to {' or '.join(others)}: check its indentation"
        return guess(SYNONYMS.get(lower, lower), known)


def guess(word: str, choices: tuple[str, ...]) -> str:
    """Returns a hint with the choice that was probably meant, and all choices."""
    near = word if word in choices else nearest(word, choices)
    expected = f"expected one of {', '.join(choices)}"
    return f"did you mean {near!r}? E{expected[1:]}" if near else expected


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…")


def _other_unit(text: str, units: Mapping[str, str]) -> str:
    """Returns a text such as `1 day` as it is written here, `1d`; "" for an unknown unit."""
    found = _NUMBER_AND_UNIT.fullmatch(text.strip())
    unit = units.get(found[2].lower(), "") if found is not None else ""
    return f"{found[1]}{unit}" if found is not None and unit else ""


_NUMBER_AND_UNIT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([A-Za-z]{1,10})")
_TIME_UNITS = {
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
}
# As Kubernetes and Slurm write them.
_SIZE_UNITS = {**{f"{one}i": f"{one.upper()}iB" for one in "kmgt"}, **{"m": "MB", "g": "GB"}}
# What people write who think of another format.
SYNONYMS = {
    **dict.fromkeys(("success", "succeeded", "done", "ok"), "complete"),
    **dict.fromkeys(("error", "failure"), "failed"),
    **dict.fromkeys(("cancelled", "canceled", "killed"), "aborted"),
    **dict.fromkeys(("exists", "available", "there"), "present"),
    **dict.fromkeys(("depends_on", "needs", "requires"), "dependencies"),
    **dict.fromkeys(("foreach", "loop", "with_items", "matrix"), "for_each"),
    **dict.fromkeys(("if", "only_if", "enabled"), "when"),
    **{"name": "id", "count": "number", "task": "stage", "object": "buffer_object"},
    **{"value": "number", "number": "value", "amount": "value", "size": "value"},
}
_MEASURES: Mapping[KeyKind, tuple[Callable[[str], float], float, Mapping[str, str]]] = {
    KeyKind.DURATION: (parse_duration, TIMEOUT_SECONDS_MAX, _TIME_UNITS),
    KeyKind.SIZE: (parse_size, SIZE_BYTES_MAX, _SIZE_UNITS),
}
_READ: Mapping[KeyKind, Callable[[FieldReader, str, Scalar], object]] = {
    **dict.fromkeys(_MEASURES, FieldReader._measured),
    **dict.fromkeys((KeyKind.NUMBER, KeyKind.COUNT), FieldReader._number),
    KeyKind.BOOLEAN: FieldReader._flag,
}
_OLD_FLAGS = {"yes": True, "on": True, "no": False, "off": False}  # of YAML 1.1
