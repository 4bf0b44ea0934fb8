"""Writes a workflow in Python as the flow.cylc that means the same, which anybody may read.

To read a definition in Python is to execute it. So it is executed once, by whoever gives it,
and what is kept and sent is this text, with the modules beside it; from then on nobody executes
the file but the jobs of its functions. The text is read again by its writer, and refused unless
it says exactly what the workflow says: what cannot be written is never half written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tidewheel.core.graph.definition import WorkflowDef
from tidewheel.core.graph.findings import Findings, InvalidDefinition, Position
from tidewheel.formats.flow_cylc.families import ROOT
from tidewheel.formats.flow_cylc.graph_text import (
    Both,
    Chain,
    Expression,
    GraphTokenKind,
    Token,
)
from tidewheel.formats.flow_cylc.items import NAMESPACE, SCHEDULER, SCHEDULING, SectionSpec
from tidewheel.formats.flow_cylc.settings import FlowSettings, Placed
from tidewheel.formats.flow_cylc.source_loader import FLOW_FILE
from tidewheel.formats.flow_cylc.source_text import PLAIN, BadSource, SourceText, decoded
from tidewheel.formats.flow_cylc.values import ValueKind
from tidewheel.formats.flow_cylc.workflow import LoadOptions, load_source
from tidewheel.formats.python_api.assembly import ReadOptions, Resolver, is_once, lists_of
from tidewheel.formats.python_api.settings import SPECIAL

if TYPE_CHECKING:
    from tidewheel.formats.python_api.declarations import Declarations, Declared
    from tidewheel.formats.python_api.terms import StatementLog

_PLAIN = re.compile(r"[\w./:+\-]+(?: [\w./:+\-]+)*")
_SPECIAL_ITEMS = {
    "sequential": "sequential",
    "wait_for_clock": "clock-trigger",
    "wait_for_message": "external-trigger",
    "expire_after": "clock-expire",
}
assert _SPECIAL_ITEMS.keys() == SPECIAL.keys()
_HEAD = f"""{PLAIN}
# Generated from the workflow {{name}} by executing {{file}}. To change it, edit that file,
# then run: tidewheel reload RUN, or tidewheel register.
"""


def flow_text(
    ledger: StatementLog, declared: Declarations, settings: FlowSettings, file: str
) -> str:
    """Returns the text of the flow.cylc; `file` is the one that was executed."""
    name = " ".join(ledger.workflow.split())
    lines = [_HEAD.format(name=name, file=Path(file).name)]
    lines += _settings("scheduler", SCHEDULER, settings.scheduler)
    lines += _parameters(ledger)
    lines += _settings(
        "scheduling", SCHEDULING, settings.scheduling, once=is_once(settings, ledger.sections)
    )
    resolver = Resolver(declared, ledger, Findings())
    lines += _scheduling(ledger, declared, resolver)
    lines.append("[runtime]\n")
    for one in resolver.declared.values():
        lines += _namespace(one, resolver.own_values(one.name))
    return "".join(lines)


def checked_text(text: str, definition: WorkflowDef, options: ReadOptions, folder: Path) -> str:
    """Returns the text if it says what the definition says; else raises InvalidDefinition.

    Functions of xtriggers are looked for in the folder of the Python file.
    """
    findings = Findings()
    try:
        lines = decoded(text.encode(), FLOW_FILE).splitlines()
    except (BadSource, UnicodeEncodeError) as error:
        seen = (
            f"{definition.name} cannot be stored: one of its strings cannot be written to a "
            f"file: {error}"
        )
        findings.error("not-written", seen)
        raise InvalidDefinition(definition.name, findings.sorted()) from None
    source = SourceText.as_written(folder, (FLOW_FILE,), lines)
    how = LoadOptions(
        now=options.now, name=definition.name, points=options.points, policy=options.policy
    )
    loaded = load_source(source, how, findings)
    differing = _differing(definition, loaded.workflow)
    if differing and not findings.has_errors:
        findings.error(
            "not-written",
            f"{definition.name} cannot be stored as the text of a flow.cylc: read from that "
            f"text, it would have other {', '.join(differing)}",
            "look for triple quotes of both kinds, and for control characters, in its strings",
        )
    if findings.has_errors:
        raise InvalidDefinition(definition.name, findings.sorted())
    return text


def _differing(one: WorkflowDef, other: WorkflowDef | None) -> list[str]:
    if other is None:
        return ["all"]
    return [
        f.name.replace("_", " ")
        for f in fields(one)
        if f.compare and _said(getattr(one, f.name)) != _said(getattr(other, f.name))
    ]


def _said(value: object) -> object:
    """Returns a part of a definition without the places where its lines stand."""
    if is_dataclass(value) and not isinstance(value, type):
        named = {one.name: getattr(value, one.name) for one in fields(value)}
        named.pop("position", None)
        return (type(value), {name: _said(one) for name, one in named.items()})
    if isinstance(value, Position):
        return None
    if isinstance(value, Mapping):
        return {name: _said(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [_said(one) for one in value]
    return value


# Sections.


def _settings(
    name: str, spec: SectionSpec, values: object, *, once: bool = False
) -> Iterator[str]:
    """Yields the items of a section whose values a workflow in Python has as texts."""
    yield f"[{name}]\n"
    for item, one in spec.entries.items():
        value = None if isinstance(one, SectionSpec) or not one.to else getattr(values, one.to)
        text = value.text if isinstance(value, Placed) else value
        is_said = bool(text) and isinstance(text, str | int) and not isinstance(text, bool)
        if is_said and not (once and item == "cycling mode"):
            yield f"    {item} = {text}\n"


def _parameters(ledger: StatementLog) -> Iterator[str]:
    """Yields the lists that tasks are mapped over."""
    if ledger.lists:
        yield "[task parameters]\n"
    for name, one in lists_of(ledger).items():
        yield f"    {name} = {one.task}.{one.value} max {one.elements_max}\n"


def _scheduling(
    ledger: StatementLog, declared: Declarations, resolver: Resolver
) -> Iterator[str]:
    yield "    [[queues]]\n"
    for name, limited in declared.limits.items():
        yield f"        [[[{name}]]]\n            limit = {limited.limit}\n"
        if limited.members:
            members = map(resolver.names.of, limited.members)
            yield f"            members = {', '.join(members)}\n"
    yield "    [[special tasks]]\n"
    for word, item in _SPECIAL_ITEMS.items():
        if named := list(_special(resolver, word)):
            yield f"        {item} = {', '.join(named)}\n"
    yield "    [[xtriggers]]\n"
    for label, call in declared.xtriggers.items():
        given = [_argument(one) for one in call.arguments]
        given += [f"{name}={_argument(one)}" for name, one in call.keywords]
        every = f":{_duration(call.interval_seconds)}"
        yield f"        {label} = {call.function}({', '.join(given)}){every}\n"
    yield "    [[graph]]\n"
    for section in ledger.sections.values():
        chains = resolver.names.chains(section.chains)
        lines = "".join(f"            {_chain(one)}\n" for one in chains)
        yield f'        {section.recurrence} = """\n{lines}        """\n'


def _special(resolver: Resolver, word: str) -> Iterator[str]:
    if word == "sequential":
        yield from (name for name, on in resolver.special(word, bool) if on)
        return
    quote = '"' if word == "wait_for_message" else ""
    yield from (f"{name}({quote}{one}{quote})" for name, one in resolver.special(word, str))


def _namespace(one: Declared, values: Mapping[str, object]) -> Iterator[str]:
    yield f"    [[{one.name}]]\n"
    if parents := [name for name in one.parents if name != ROOT]:
        yield f"        inherit = {', '.join(parents)}\n"
    sections: list[str] = []
    for name, value in values.items():
        if name in SPECIAL:
            continue
        spec = NAMESPACE.entries[name]
        if not isinstance(spec, SectionSpec):
            yield f"        {name} = {_value(spec.kind, value)}\n"
            continue
        sections.append(f"        [[[{name}]]]\n")
        for key, inner in cast("Mapping[str, object]", value).items():
            entry = spec.entries.get(key, spec.other)
            assert entry is not None and not isinstance(entry, SectionSpec)
            sections.append(f"            {key} = {_value(entry.kind, inner)}\n")
    yield from sections


# Values.


def _value(kind: ValueKind, value: object) -> str:
    match kind:
        case ValueKind.TEXTS:
            return ", ".join(_listed(str(one)) for one in cast("Iterable[object]", value))
        case ValueKind.DURATION:
            return _duration(cast("float", value))
        case ValueKind.DURATIONS:
            return ", ".join(map(_duration, cast("Iterable[float]", value)))
        case ValueKind.TEXT:
            return _text(str(value))
        case _:
            return str(value)


def _text(text: str) -> str:
    if not text or _PLAIN.fullmatch(text):
        return text
    if not {*text} & {*'"\\\n'}:
        return f'"{text}"'
    quotes = "'''" if '"""' in text else '"""'
    # On lines of its own: what ends in a quote stays apart from those around it.
    return f"{quotes}\n{text}\n{quotes}"


def _listed(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    return f"'{text}'" if '"' in text else f'"{text}"'


def _duration(seconds: float) -> str:
    return f"PT{int(seconds) if seconds == int(seconds) else seconds}S"


def _argument(value: object) -> str:
    is_text = isinstance(value, str)
    return repr(value) if is_text and not _PLAIN.fullmatch(str(value)) else _bare(value)


def _bare(value: object) -> str:
    looks_otherwise = isinstance(value, str) and re.fullmatch(r"[\d.+\-e]+|\w+", value)
    return f"'{value}'" if looks_otherwise else str(value)


# The graph.


def _chain(chain: Chain) -> str:
    return " => ".join(map(_side, chain.sides))


def _side(side: Expression) -> str:
    if isinstance(side, Token):
        return _token(side)
    sign = " & " if isinstance(side, Both) else " | "
    return sign.join(
        _side(one) if isinstance(one, Token) else f"({_side(one)})" for one in side.terms
    )


def _token(token: Token) -> str:
    if token.kind is GraphTokenKind.XTRIGGER:
        return f"@{token.text}"
    offset = "" if token.offset is None else f"[{token.offset}]"
    qualifier = "" if token.qualifier is None else f":{token.qualifier}"
    mark = "?" if token.optional else ""
    return f"{'!' if token.suicide else ''}{token.text}{offset}{qualifier}{mark}"
