"""Turns chains of graph text into arrows, placements and marks of the definition.

Each pair of neighbours in a chain is an arrow from the whole left side to every task of the
right one. The left-most side places its tasks; every task but those with an offset is placed by
standing on the right. Families on the right are their members, on the left one group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any

from tidewheel.core.cycling.calendar import BadCycling
from tidewheel.core.cycling.offset import Offset
from tidewheel.core.graph import definition
from tidewheel.core.graph.findings import Findings, Position, nearest
from tidewheel.core.graph.outputs import FINISHED, STANDARD, SUCCEEDED, made_by, standard_name
from tidewheel.formats.flow_cylc.graph_text import (
    Both,
    Chain,
    Either,
    Expression,
    GraphTokenKind,
    Token,
    nodes_of,
)
from tidewheel.lazy_dataclasses import dataclass

_NODE, _XTRIGGER = GraphTokenKind.NODE, GraphTokenKind.XTRIGGER
_NAMED_MAX = 3  # members in a hint
ARROWS_MAX = 1_000_000  # of a definition (RELIABILITY S17)

_FAMILY_OUTPUTS = (
    "submit", "submit-fail", "start", "succeed", "fail", "finish", "expire",
)  # fmt: skip
# `succeed-all` -> ("succeeded", every member)
FAMILY_QUALIFIERS = {
    f"{short}-{reach}": (standard_name(short), reach == "all")
    for short in _FAMILY_OUTPUTS
    for reach in ("all", "any")
}


class _Wrong(Exception):
    """A node that cannot stand where it stands."""

    def __init__(self, code: str, message: str, hint: str, position: Position) -> None:
        self.finding = (code, message, hint, position)
        super().__init__(message)


# By all that an OutputMark says but for its position.
Marks = dict[tuple[str, str, bool, bool, bool], definition.OutputMark]


@dataclass(slots=True)
class Lowered:
    """Holds the arrows, placements and marks that the chains of one section stand for."""

    arrows: dict[tuple[object, ...], definition.Arrow] = field(default_factory=dict)
    placements: dict[str, definition.Placement] = field(default_factory=dict)
    marks: Marks = field(default_factory=dict)
    polled: dict[str, str] = field(default_factory=dict)  # task -> workflow::task:status


@dataclass(slots=True)
class Lowering:
    """Turns chains into arrows for all sections, with the families of one workflow."""

    _families: Mapping[str, tuple[str, ...]]
    _read_offset: Callable[[str], Offset]
    _findings: Findings
    _offsets: dict[str, Offset] = field(default_factory=dict)  # by text
    _equal_offsets: dict[Offset, Offset] = field(default_factory=dict)  # of which one is used
    _arrow_count: int = 0

    def lower(self, chains: Iterable[Chain]) -> Lowered:
        lowered = Lowered()
        for chain in chains:
            try:
                self._lower_chain(chain, lowered)
            except _Wrong as wrong:
                self._findings.error(*wrong.finding)
                if self._findings.is_full:
                    break
            if self._arrow_count > ARROWS_MAX:
                seen = f"the graph has more than {ARROWS_MAX} arrows"
                hint = "group tasks with the same dependencies into families"
                self._findings.error("too-many-edges", seen, hint, chain.position)
                break
        return lowered

    def _lower_chain(self, chain: Chain, lowered: Lowered) -> None:
        outputs = self._plain_outputs(chain.sides)
        if outputs is not None:
            sides: Any = chain.sides
            self._lower_plain(sides, outputs, lowered)
            return
        for token in nodes_of(chain.sides[0]):
            if token.suicide:
                raise _suicide_on_the_left(token)
            if token.kind is _NODE:
                self._mention(token, lowered, leads_on=len(chain.sides) > 1)
        last = len(chain.sides) - 1
        for at in range(last):
            self._lower_pair(
                chain.sides[at], chain.sides[at + 1], lowered, leads_on=at + 1 < last
            )

    def _plain_outputs(self, sides: tuple[Expression, ...]) -> list[str] | None:
        """Returns the outputs that are asked for if each side is one task, and neither a family
        nor mapped, and nothing else is said than its output; None for any other chain."""
        outputs, families = [], self._families
        offset = None  # of the last side
        for side in sides:
            if type(side) is not Token:
                return None
            kind, name, _, offset, qualifier, _, suicide, polled = side
            if kind is not _NODE or suicide or polled is not None:
                return None
            if name in families or "<" in name:
                return None
            if qualifier is None:
                outputs.append(SUCCEEDED)
            else:
                output = standard_name(qualifier)
                if output == FINISHED or qualifier in FAMILY_QUALIFIERS:
                    return None
                outputs.append(output)
        return None if len(sides) > 1 and offset is not None else outputs

    def _lower_plain(
        self, sides: tuple[Token, ...], outputs: list[str], lowered: Lowered
    ) -> None:
        """Lowers a chain such as `a => b:x? => c[-P1] => d`, as nearly all are: the same that
        the general way would, in one pass."""
        placements, marks, last = lowered.placements, lowered.marks, len(sides) - 1
        parent: definition.Atom | None = None
        for at, token in enumerate(sides):
            _, name, place, text, qualifier, optional, _, _ = token
            offset = None
            if text is not None:
                offset = self._offset(token)
            elif name not in placements:
                placements[name] = tuple.__new__(definition.Placement, (name, place))
            if optional or at < last or qualifier is not None:
                key = (name, outputs[at], optional, False, True)
                if key not in marks:
                    marks[key] = tuple.__new__(definition.OutputMark, (*key, place))
            if parent is not None and text is None:
                self._add(lowered, parent, (name,), place, suicide=False)
            if at < last:
                parent = definition.Atom(name, outputs[at], offset)

    def _lower_pair(
        self, left: Expression, right: Expression, lowered: Lowered, *, leads_on: bool
    ) -> None:
        targets: list[str] = []
        doomed: list[str] = []
        position = None
        is_plain = isinstance(right, Token) and right.kind is _NODE
        for token in (right,) if is_plain else _right_tokens(right):
            assert isinstance(token, Token)
            position = position or token.position
            if token.offset is not None and not leads_on:
                seen = f"{token.text}[{token.offset}] is at the right end of a chain"
                move = "move the offset to the left side with the opposite sign"
                hint = f"an arrow leads to the task at the same cycle point: {move}"
                raise _Wrong("offset-on-the-right", seen, hint, token.position)
            if token.suicide and _mapped_by(token.text):
                seen = f"!{token.text}: a mapped task cannot be removed"
                hint = "let it wait for the output that decides whether it runs"
                raise _Wrong("mapped-task", seen, hint, token.position)
            if token.suicide:
                doomed.extend(self._members(token))
                continue
            members = self._mention(token, lowered, leads_on=leads_on)
            if token.offset is None:
                targets.extend(members)
        assert position is not None
        # What waits for a mapped task is each element for its own, or one task for them all.
        parameters = dict.fromkeys(map(_mapped_by, targets)) or ("",)
        for parameter in parameters:
            condition = self._condition(left, parameter)
            same = targets
            if len(parameters) > 1:
                same = [name for name in targets if _mapped_by(name) == parameter]
            self._add(lowered, condition, tuple(same), position, suicide=False)
        if doomed:
            condition = self._condition(left, "")
            self._add(lowered, condition, tuple(doomed), position, suicide=True)

    def _add(
        self,
        lowered: Lowered,
        condition: definition.Condition,
        targets: tuple[str, ...],
        position: Position,
        *,
        suicide: bool,
    ) -> None:
        if not targets:
            return
        # A condition is slow to hash, and so is an offset, of which equal ones are one.
        key: tuple[object, ...] = (condition, targets)
        if type(condition) is definition.Atom:
            key = (condition.node, condition.output, id(condition.offset), targets)
        arrow = definition.Arrow(condition, targets, suicide, position)
        known = lowered.arrows.setdefault(key, arrow)
        if known is arrow:
            self._arrow_count += len(targets)
        elif known.suicide is not suicide:
            seen = f"the same condition both runs and removes {', '.join(targets[:3])}"
            hint = "keep one of '=> name' and '=> !name'"
            raise _Wrong("contrary-arrows", seen, hint, position)

    def _mention(self, token: Token, lowered: Lowered, *, leads_on: bool) -> tuple[str, ...]:
        """Places the task, unless it has an offset, and keeps the marks of its outputs.

        Returns the members of a family; of a task, the task itself.
        """
        members = self._members(token)
        if token.polled is not None:
            lowered.polled[token.text] = token.polled
        if token.offset is None:
            for name in members:
                if name not in lowered.placements:
                    placement = (name, token.position)
                    lowered.placements[name] = tuple.__new__(definition.Placement, placement)
        else:
            self._offset(token)
        # A plain name that leads nowhere says nothing about its outputs.
        if token.qualifier is not None or token.optional or leads_on:
            self._mark(token, members, lowered.marks)
        return members

    def _mark(self, token: Token, members: tuple[str, ...], marks: Marks) -> None:
        is_family = self._is_group(token)
        output, every = self._output(token)
        if output == FINISHED and token.optional:
            seen = f"{token.text}:{token.qualifier}? already means success or failure"
            raise _Wrong("finish-is-optional", seen, "write it without '?'", token.position)
        if is_family and not every and not token.optional and output != FINISHED:
            return
        explicit = output != FINISHED
        optional = token.optional or not explicit
        for name in members:
            for made in made_by(output):
                key = (name, made, optional, is_family, explicit)
                if key not in marks:
                    mark = (*key, token.position)
                    marks[key] = tuple.__new__(definition.OutputMark, mark)

    def _output(self, token: Token) -> tuple[str, bool]:
        """Returns the standard name of the output, and whether all of a family must make it."""
        qualifier = token.qualifier
        if qualifier is None:
            return SUCCEEDED, True
        if token.text not in self._families:
            if self._is_group(token):
                return FAMILY_QUALIFIERS[qualifier]
            if qualifier in FAMILY_QUALIFIERS:
                seen = f"{token.text}:{qualifier} needs a family, and {token.text} is a task"
                hint = self._nearest_family(token.text)
                raise _Wrong("no-family", seen, hint, token.position)
            return standard_name(qualifier), True
        if qualifier not in FAMILY_QUALIFIERS:
            output = qualifier.removesuffix("-all").removesuffix("-any")
            if standard_name(output) not in (*STANDARD, FINISHED):
                raise self._custom_of_family(token, output)
            short = next(
                (one for one in _FAMILY_OUTPUTS if qualifier.startswith(one)), "succeed"
            )
            if output == qualifier:
                seen = f"{token.text}:{qualifier} does not say if all or any members are meant"
                hint = f"write {token.text}:{short}-all or {token.text}:{short}-any"
            else:
                seen = f"{token.text}:{qualifier} is not an output of a family"
                hint = f"write {token.text}:{short}{qualifier.removeprefix(output)}"
            raise _Wrong("family-output", seen, hint, token.position)
        return FAMILY_QUALIFIERS[qualifier]

    def _custom_of_family(self, token: Token, output: str) -> _Wrong:
        """Returns the error for a custom output of a family, which has only standard ones."""
        joint = " | " if str(token.qualifier).endswith("-any") else " & "
        members = self._members(token)
        named = joint.join(f"{one}:{output}" for one in members[:_NAMED_MAX])
        accepted = ", ".join(f"{short}-all" for short in _FAMILY_OUTPUTS)
        seen = f"{token.text}:{token.qualifier}: a family has no output {output!r}"
        hint = (
            f"expected {accepted}, or one of them with -any; for another output name the "
            f"members: {named}{f'{joint}…' if len(members) > _NAMED_MAX else ''}"
        )
        return _Wrong("family-output", seen, hint, token.position)

    def _nearest_family(self, name: str) -> str:
        if near := nearest(name, self._families):
            return f"did you mean the family {near}?"
        none = f"nothing inherits from {name}; leave them out after the name of a task"
        return f"-all and -any are for families, and {none}"

    def _members(self, token: Token) -> tuple[str, ...]:
        members = self._families.get(token.text)
        if members is None:
            return (token.text,)
        for name in members:
            if _mapped_by(name):
                seen = f"the family {token.text} has the mapped task {name} as a member"
                hint = "name the members of the family in the graph instead"
                raise _Wrong("mapped-task", seen, hint, token.position)
        return members

    def _is_group(self, token: Token) -> bool:
        """Says whether a node stands for members: a family, or elements with -all or -any."""
        if token.text in self._families:
            return True
        return token.qualifier in FAMILY_QUALIFIERS and bool(_mapped_by(token.text))

    def _condition(self, side: Expression, parameter: str) -> definition.Condition:
        """Returns a left side as it is for targets mapped by a parameter, or by none."""
        if isinstance(side, Token):
            return self._leaf(side, parameter)
        terms = tuple(self._condition(term, parameter) for term in side.terms)
        if isinstance(side, Both):
            return definition.all_of(terms)
        for term in nodes_of(side):
            if term.kind is _XTRIGGER:
                seen = f"the xtrigger @{term.text} is in an OR"
                join = "use '&', or let a separate task wait for the other condition"
                hint = f"a task waits for all of its xtriggers: {join}"
                raise _Wrong("xtrigger-in-or", seen, hint, term.position)
        assert isinstance(side, Either)
        return definition.any_of(terms)

    def _leaf(self, token: Token, parameter: str) -> definition.Condition:
        if token.kind is _XTRIGGER:
            return definition.XtriggerTerm(token.text)
        if token.suicide:
            raise _suicide_on_the_left(token)
        output, every = self._output(token)
        offset = self._offset(token)
        if token.text in self._families:
            if token.qualifier is None:
                seen = f"the family {token.text} on the left of an arrow needs an output"
                hint = f"write {token.text}:succeed-all or {token.text}:succeed-any"
                raise _Wrong("family-output", seen, hint, token.position)
            return definition.Group(token.text, made_by(output), every, offset)
        own = _mapped_by(token.text)
        if own or parameter:
            self._check_mapped(token, offset, parameter)
        if own and (self._is_group(token) or own != parameter):
            return definition.Group(token.text, made_by(output), every, offset)
        if output != FINISHED:
            return definition.Atom(token.text, output, offset)
        return definition.AnyOf(
            tuple(definition.Atom(token.text, made, offset) for made in made_by(output))
        )

    @staticmethod
    def _check_mapped(token: Token, offset: Offset | None, parameter: str) -> None:
        own = _mapped_by(token.text)
        if offset is None:
            return
        seen = hint = ""
        if own and offset.is_absolute:
            seen = f"{token.text}[{token.offset}] waits for elements at a fixed point"
            hint = "wait for a task that runs after all of the elements there"
        elif parameter and offset.is_absolute:
            seen = f"<{parameter}> waits for {token.text}[{token.offset}], at a fixed point"
            hint = (
                "let the task that returns the list wait for "
                f"{token.text}[{token.offset}]; to use one list at all points, let a task "
                "return the list at each point "
                f"([[[inputs]]] NAME = {token.text}[^].LIST)"
            )
        elif own == parameter and token.qualifier not in FAMILY_QUALIFIERS:
            seen = f"{token.text}[{token.offset}] waits for single elements at another point"
            hint = "lists at two points can differ: wait for all elements with :succeed-all"
        if seen:
            raise _Wrong("mapped-task", seen, hint, token.position)

    def _offset(self, token: Token) -> Offset | None:
        text = token.offset
        if text is None:
            return None
        if text not in self._offsets:
            try:
                offset = self._read_offset(text)
                self._offsets[text] = self._equal_offsets.setdefault(offset, offset)
            except BadCycling as bad:
                seen = f"the offset of {token.text}[{text}] is not understood: {bad.message}"
                raise _Wrong("offset", seen, bad.hint, token.position) from None
        return self._offsets[text]


_mapped_by = definition.parameter_of


def _suicide_on_the_left(token: Token) -> _Wrong:
    seen = f"!{token.text} is on the left of an arrow"
    hint = "write '!' before a task on the right: 'condition => !task'"
    return _Wrong("suicide-on-the-left", seen, hint, token.position)


def _right_tokens(side: Expression) -> Iterable[Token]:
    if isinstance(side, Either):
        token = next(nodes_of(side))
        seen = "'|' is on the right of an arrow"
        hint = "an arrow leads to all tasks on its right: use '&', or a line for each task"
        raise _Wrong("or-on-the-right", seen, hint, token.position)
    if isinstance(side, Both):
        for term in side.terms:
            yield from _right_tokens(term)
        return
    if side.kind is _XTRIGGER:
        seen = f"@{side.text} is on the right of an arrow"
        hint = "an xtrigger can only be waited for: '@name => task'"
        raise _Wrong("xtrigger-on-the-right", seen, hint, side.position)
    yield side
