"""Defines the terms of a statement, the operators that join them, and the log of statements.

Theory of operation. A term is a value: every operator makes a new one. `>>` also records, as a
Python statement leaves nothing else behind. `a >> b >> c` is `(a >> b) >> c` to Python, so a
chain that grows replaces the shorter one in the log of statements.

The trap. To Python `>>` binds tighter than `&` and `|`, so that `a & b >> c` is `a & (b >> c)`;
a reader takes it for `(a & b) >> c`. No meaning is given to a chain beside `&` or `|`: it is
refused, with the parentheses that were meant. `and`, `or` and `not` would drop a side without a
word, and are refused too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import NoReturn

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.core.graph.outputs import SHORT_FORMS, SUCCEEDED
from tidewheel.errors import Refused
from tidewheel.formats.flow_cylc.graph_text import (
    Both,
    Chain,
    Either,
    Expression,
    GraphTokenKind,
    Token,
)
from tidewheel.lazy_dataclasses import dataclass

# Refuses a statement of a definition in Python, and finds the line that is to blame.
#
# What Python itself would refuse, such as an operator on the wrong thing, is refused at once.
# What a definition says wrongly is collected, and refused all together (``InvalidDefinition``).

_PACKAGE = f"{Path(__file__).parent}{os.sep}"


class BadStatement(Refused):
    """A statement that cannot be meant as it is written; nothing was recorded."""

    code = "bad_statement"

    def __init__(self, message: str, hint: str) -> None:
        self.message, self.hint, self.position = message, hint, written_at()
        super().__init__(f"{self.position}: {message}. {hint}")


def written_at() -> Position:
    """Returns the line that is being executed outside of this package: the author's line."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return Position(frame.f_code.co_filename, frame.f_lineno)


TaskFunction = Callable[..., object]


@dataclass(slots=True)
class MappedList:
    """Names a list that a task returns; tasks that are mapped over it share its parameter."""

    parameter: str  # process<file> is made of elements process_file0, process_file1, …
    source: str
    value: str  # its name among the values of the source
    elements_max: int | None = None  # None: nobody has said


@dataclass(frozen=True, slots=True)
class MappedCall:
    """Says over what a task is mapped, and which argument of its function differs."""

    over: MappedList
    argument: str = ""  # "": it has no function
    is_element: bool = False  # the argument is the element of the list itself


# Keeps the statements of a workflow, each under the recurrence that was open at that time.


@dataclass(slots=True)
class StatementSection:
    """Holds the statements under one recurrence, also if it is opened in several places."""

    recurrence: str
    position: Position
    # A dict for its order: the same statement twice is one.
    chains: dict[Chain, None] = field(default_factory=dict)


@dataclass(slots=True)
class StatementLog:
    """Records the statements and functions of a workflow while its file is being executed."""

    workflow: str
    is_integer: bool
    folder: Path  # of the file that makes the workflow
    findings: Findings = field(default_factory=Findings)
    sections: dict[str, StatementSection] = field(default_factory=dict)
    current: StatementSection | None = None
    called_outside: Position | None = None  # the first call that is in no cycle: it runs once
    functions: dict[str, TaskFunction] = field(default_factory=dict)  # by task
    # By task and parameter: a task whose value it takes, or a constant.
    arguments: dict[str, dict[str, object]] = field(default_factory=dict)
    lists: dict[tuple[str, str], MappedList] = field(default_factory=dict)  # by task and value
    mapped: dict[str, MappedCall] = field(default_factory=dict)  # by task

    def open(self, recurrence: str) -> None:
        if self.current is not None:
            outer = self.current.recurrence
            seen = f"the cycle {recurrence!r} begins inside the cycle {outer!r}"
            hint = "end the outer cycle first: 'with flow.cycle(…)' cannot be nested"
            raise BadStatement(seen, hint)
        new = StatementSection(recurrence, written_at())
        self.current = self.sections.setdefault("".join(recurrence.split()), new)

    def expect_cycle(self, *sides: object) -> None:
        if self.current is None:
            outside = f"is outside of a cycle of the workflow {self.workflow!r}"
            hint = "write it under 'with flow.cycle(\"P1\"):', or under another recurrence"
            raise BadStatement(f"{' >> '.join(map(str, sides))} {outside}", hint)

    def record(self, chain: Chain, instead_of: Chain | None = None) -> None:
        """Records a chain in place of the shorter one that it grew from.

        Where two chains grew from the same one, both stay.
        """
        assert self.current is not None
        if instead_of is not None:
            self.current.chains.pop(instead_of, None)
        self.current.chains[chain] = None


class Cycle:
    """Puts the statements below `with flow.cycle("P1"):` on that recurrence."""

    def __init__(self, ledger: StatementLog, recurrence: str) -> None:
        self._ledger, self._recurrence = ledger, recurrence

    def __enter__(self) -> None:
        self._ledger.open(self._recurrence)

    def __exit__(self, *error: object) -> None:
        self._ledger.current = None


# The terms of a statement, and the operators that join them: `&`, `|`, `>>`, `~` and `[…]`.

AND, OR = "&", "|"

_SHORT = {output: short for short, output in SHORT_FORMS.items()}
_PYTHON_WORDS = {"submit-failed": "submit_failed"}
_STANDARD = frozenset(SHORT_FORMS.values())


class Term:
    """Is the base of whatever `&`, `|` and `>>` can join."""

    __slots__ = ("ledger",)
    ledger: StatementLog
    # Without these, `for x in task` would ask for task[0], task[1], … for ever.
    __iter__ = None
    __contains__ = None

    def leaves(self) -> Iterator[TermLeaf]:
        raise NotImplementedError

    def expression(self, position: Position) -> Expression:
        """Returns the term as the expression that the reader of graph text would make."""
        raise NotImplementedError

    def __and__(self, other: Term) -> Term:
        return _join(AND, self, other)

    def __or__(self, other: Term) -> Term:
        return _join(OR, self, other)

    def __rshift__(self, other: Term) -> Statement:
        return Statement.beginning(self) >> other

    def __rand__(self, other: object) -> NoReturn:
        raise _no_term(other)

    def __ror__(self, other: object) -> NoReturn:
        raise _no_term(other)

    def __rrshift__(self, other: object) -> NoReturn:
        raise _no_term(other)

    def __bool__(self) -> bool:
        raise _no_truth(self)


@dataclass(frozen=True, slots=True)
class Mention:
    """Names one task, family or xtrigger in a statement."""

    name: str
    kind: GraphTokenKind = GraphTokenKind.NODE
    is_family: bool = False
    offset: str | None = None
    output: str | None = None
    reach: str = ""  # of a family: "all" or "any"
    optional: bool = False
    suicide: bool = False

    def __str__(self) -> str:
        words = [f"[{self.offset!r}]"] if self.offset is not None else []
        words += [f".{self.reach}"] if self.reach else []
        if self.output in _STANDARD:
            words.append(f".{_PYTHON_WORDS.get(self.output, self.output)}")
        elif self.output is not None:
            words.append(f".output({self.output!r})")
        words += [".optional"] if self.optional else []
        return "~" * self.suicide + self.name + "".join(words)

    @property
    def qualifier(self) -> str | None:
        """Returns what flow.cylc has behind the colon, such as `fail-any`; None for nothing."""
        if self.reach:
            return f"{_SHORT[self.output or SUCCEEDED]}-{self.reach}"
        return self.output


class TermLeaf(Term):
    """Is a term that names one task, family or xtrigger."""

    __slots__ = ("mention",)

    def __init__(self, ledger: StatementLog, mention: Mention) -> None:
        self.ledger, self.mention = ledger, mention

    def leaves(self) -> Iterator[TermLeaf]:
        yield self

    def expression(self, position: Position) -> Token:
        said = self.mention
        return Token(
            said.kind,
            said.name,
            position,
            offset=said.offset,
            qualifier=said.qualifier,
            optional=said.optional,
            suicide=said.suicide,
        )

    def __str__(self) -> str:
        return str(self.mention)


class Named(TermLeaf):
    """Names a whole task or family at the statement's point."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return self.mention.name

    def __invert__(self) -> TermLeaf:
        """Returns a term that removes the tasks if it stands on the right of an arrow."""
        return TermLeaf(self.ledger, replace(self.mention, suicide=True))


class Joined(Term):
    """Joins terms by one sign; `a & b & c` has three terms, not a pair within a pair."""

    __slots__ = ("sign", "terms")

    def __init__(self, sign: str, terms: tuple[Term, ...]) -> None:
        self.ledger, self.sign, self.terms = terms[0].ledger, sign, terms

    def leaves(self) -> Iterator[TermLeaf]:
        for term in self.terms:
            yield from term.leaves()

    def expression(self, position: Position) -> Expression:
        kind = Both if self.sign == AND else Either
        return kind(tuple(term.expression(position) for term in self.terms))

    def __str__(self) -> str:
        return "(" + f" {self.sign} ".join(str(term) for term in self.terms) + ")"


class Statement:
    """Records `a >> b >> c` as it is evaluated."""

    __slots__ = ("_chain", "_ledger", "_sides")
    __iter__ = None

    def __init__(self, ledger: StatementLog, sides: tuple[Term, ...], chain: Chain) -> None:
        self._ledger, self._sides, self._chain = ledger, sides, chain

    @classmethod
    def beginning(cls, first: Term) -> Statement:
        """Returns a chain of one side, not yet recorded."""
        position = written_at()
        return cls(first.ledger, (first,), Chain((first.expression(position),), position))

    def place(self) -> None:
        """Records the statement as it is: its tasks take their places in the cycle."""
        self._ledger.expect_cycle(self)
        _check_left(self._sides[0], leads_on=False)
        self._ledger.record(self._chain)

    def __rshift__(self, other: Term) -> Statement:
        left = self._sides[-1]
        right = _check_right(other, left)
        _check_left(left, leads_on=True)
        self._ledger.expect_cycle(self, right)
        position = written_at()
        chain = Chain((*self._chain.sides, right.expression(position)), position)
        self._ledger.record(chain, instead_of=self._chain)
        return Statement(self._ledger, (*self._sides, right), chain)

    def __and__(self, other: object) -> NoReturn:
        raise _unclear(self, AND, other)

    def __or__(self, other: object) -> NoReturn:
        raise _unclear(self, OR, other)

    def __bool__(self) -> bool:
        raise _no_truth(self)

    def __str__(self) -> str:
        return " >> ".join(str(side) for side in self._sides)


def all_of(*terms: Term) -> Term:
    """Joins tasks and conditions by `&`, such as those of a list: `all_of(*models) >> post`.

    Raises BadStatement without arguments, or if one is neither a task nor a condition.
    """
    return _join(AND, *terms)


def any_of(*terms: Term) -> Term:
    """Joins tasks and conditions by `|`, such as those of a list: `any_of(*mirrors) >> post`.

    Raises BadStatement without arguments, or if one is neither a task nor a condition.
    """
    return _join(OR, *terms)


def _join(sign: str, *terms: object) -> Term:
    if not terms:
        raise BadStatement("nothing is joined", "give at least one task")
    flat: list[Term] = []
    for term in terms:
        if isinstance(term, Statement):
            raise _unclear(terms[0], sign, term)
        known = _checked(term, flat[:1])
        flat += known.terms if isinstance(known, Joined) and known.sign == sign else (known,)
    if sign == OR:
        _check_alternatives(flat)
    return flat[0] if len(flat) == 1 else Joined(sign, tuple(flat))


def _check_alternatives(terms: list[Term]) -> None:
    for leaf in (leaf for term in terms for leaf in term.leaves()):
        if leaf.mention.kind is GraphTokenKind.XTRIGGER:
            raise BadStatement(
                f"the xtrigger {leaf} is in an OR ('|')",
                "a task waits for all of its xtriggers: use '&', or let a separate task wait "
                "for the other condition",
            )
        if leaf.mention.suicide:
            raise BadStatement(
                f"{leaf} is in an OR ('|')", "an arrow leads to all tasks on its right: use '&'"
            )


def _checked(term: object, before: list[Term]) -> Term:
    """Returns the term; BadStatement if it is none, or of another workflow than the others."""
    if not isinstance(term, Term):
        raise _no_term(term)
    for other in before:
        if term.ledger is not other.ledger:
            theirs, ours = (f"the workflow {one.ledger.workflow!r}" for one in (other, term))
            seen = f"{other} belongs to {theirs}, and {term} to {ours}"
            hint = (
                "join tasks of one workflow; use an xtrigger to wait for a task of another "
                "workflow"
            )
            raise BadStatement(seen, hint)
    return term


def _check_right(side: object, left: Term) -> Term:
    """Returns the right side of an arrow; BadStatement if it cannot stand there."""
    if isinstance(side, Statement):
        seen = f"a chain is on the right of an arrow: {left} >> ({side})"
        raise BadStatement(seen, f"leave out the parentheses: {left} >> {side}")
    right = _checked(side, [left])
    if isinstance(right, Joined):
        if right.sign == OR:
            hint = "an arrow leads to all tasks on its right: use '&', or a line for each task"
            raise BadStatement(f"'|' is on the right of an arrow: {left} >> {right}", hint)
        for term in right.terms:
            _check_right(term, left)
    elif isinstance(right, TermLeaf) and right.mention.kind is GraphTokenKind.XTRIGGER:
        seen = f"the xtrigger {right} is on the right of an arrow"
        raise BadStatement(seen, f"an xtrigger can only be waited for: {right} >> task")
    return right


def _check_left(side: Term, *, leads_on: bool) -> None:
    for leaf in side.leaves():
        said = leaf.mention
        if said.suicide:
            hint = f"'~' removes a task: write it on the right: condition >> {leaf}"
            raise BadStatement(f"{leaf} is on the left of an arrow", hint)
        if said.is_family and not said.reach and leads_on:
            seen = f"the family {leaf} on the left of an arrow needs an output"
            raise BadStatement(seen, f"write {leaf}.all.succeeded or {leaf}.any.succeeded")
        if said.kind is GraphTokenKind.XTRIGGER and not leads_on:
            raise BadStatement(f"{leaf} is an xtrigger", f"write {leaf} >> task")


def _unclear(left: object, sign: str, right: object) -> BadStatement:
    """Returns the error for a chain beside a sign; it shows the parentheses that were meant."""
    before, after = _sides_of(left), _sides_of(right)
    parts: list[object] = []
    for side in (before[-1], after[0]):
        parts += side.terms if isinstance(side, Joined) and side.sign == sign else (side,)
    middle = f"({f' {sign} '.join(map(str, parts))})"
    meant = " >> ".join([*map(str, before[:-1]), middle, *map(str, after[1:])])
    whole = f"this joins a whole chain: {_grouped(left)} {sign} {_grouped(right)}"
    seen = f"in Python '>>' binds tighter than '{sign}', so {whole}"
    return BadStatement(seen, f"add parentheses: {meant}")


def _sides_of(value: object) -> tuple[object, ...]:
    return value._sides if isinstance(value, Statement) else (value,)


def _grouped(value: object) -> str:
    return f"({value})" if isinstance(value, Statement) else str(value)


def _no_term(value: object) -> BadStatement:
    if isinstance(value, list | tuple | set | frozenset):
        hint = "join several with tidewheel.all_of(*tasks) or tidewheel.any_of(*tasks)"
    elif isinstance(value, str):
        hint = f"use what flow.task({value!r}) returned"
    elif callable(value):
        hint = "make the function a task: put @flow.task above it"
    else:
        hint = "join tasks, families and xtriggers of a workflow"
    return BadStatement(f"{value!r} is not a task", hint)


def _no_truth(value: object) -> BadStatement:
    return BadStatement(
        f"{value} is neither true nor false while the workflow is being defined",
        "write '&' for 'and' and '|' for 'or', with parentheses: (a & b) >> c; for 'not' "
        "wait for the output that is meant, such as a.failed; what depends on a value of a "
        "task is decided in the function that takes the value",
    )
