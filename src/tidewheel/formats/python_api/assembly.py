"""Makes a definition of the declarations and statements of a workflow in Python.

Points, settings, families and statements go through the parts that read flow.cylc, so that the
two front ends cannot come to differ; only what a person reads is said in Python's words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from difflib import get_close_matches
from itertools import pairwise
from typing import TypeVar, cast

from tidewheel.core.cycling.calendar import Interval
from tidewheel.core.graph import definition
from tidewheel.core.graph.checks.names import gives_something_to_do
from tidewheel.core.graph.definition import parameter_of
from tidewheel.core.graph.findings import Findings, Lookalikes
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.outputs import FINISHED, STANDARD, SUCCEEDED
from tidewheel.formats.cycling.reader import BadCycling, CyclingReader
from tidewheel.formats.flow_cylc.families import ROOT, Families, arrange
from tidewheel.formats.flow_cylc.graph_arrows import FAMILY_QUALIFIERS
from tidewheel.formats.flow_cylc.graph_text import (
    Chain,
    Expression,
    GraphTokenKind,
    Token,
    nodes_of,
)
from tidewheel.formats.flow_cylc.node_checks import check_tasks
from tidewheel.formats.flow_cylc.runtime import Inheritance
from tidewheel.formats.flow_cylc.settings import FlowSettings, Placed, SchedulingSettings
from tidewheel.formats.flow_cylc.task_values import read_inputs, read_mapped
from tidewheel.formats.flow_cylc.values import ListSource
from tidewheel.formats.flow_cylc.workflow import (
    RUN_ONCE,
    GraphReader,
    PointTexts,
    read_cycling,
)
from tidewheel.formats.python_api.declarations import Declarations, Declared
from tidewheel.formats.python_api.functions import node_of, read_arguments, script_of
from tidewheel.formats.python_api.settings import SPECIAL, Values
from tidewheel.formats.python_api.terms import StatementLog
from tidewheel.lazy_dataclasses import dataclass

# The cycling of a workflow in Python, read as that of a flow.cylc is.

INTEGER = "integer"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Holds what is given beside the definition; `now` is for points relative to the clock."""

    now: float
    points: PointTexts = field(default_factory=PointTexts)
    policy: definition.Policy = definition.TIDEWHEEL


def read_points(
    settings: FlowSettings,
    recurrences: Collection[str],
    options: ReadOptions,
    findings: Findings,
) -> tuple[CyclingReader, definition.CyclingDef] | None:
    """Returns a reader of the workflow's cycling texts, and its points; None after an error."""
    texts = settings.scheduling
    if texts.cycling_mode.text != INTEGER and not (
        texts.initial_point or options.points.initial
    ):
        seen = "the cycle points of the workflow are dates, and there is no initial one"
        hint = 'write Workflow(…, initial="20300101T00Z"), or leave out cycling= for numbers'
        findings.error("no-initial-point", seen, hint, texts.cycling_mode.position)
        return None
    if is_once(settings, recurrences):
        settings = replace(settings, scheduling=replace(texts, cycling_mode=Placed()))
    return read_cycling(settings, options.points, options.now, findings)


def is_once(settings: FlowSettings, recurrences: Collection[str]) -> bool:
    """Says whether a workflow says nothing of points and runs once: it ends at its only one."""
    texts = settings.scheduling
    return not (texts.initial_point or texts.final_point) and set(recurrences) <= {RUN_ONCE}


def _check_calls(ledger: StatementLog, texts: SchedulingSettings, findings: Findings) -> None:
    """Reports a workflow that has a final point and never gets there: its calls run once."""
    final, is_repeated = texts.final_point.text, set(ledger.sections) > {RUN_ONCE}
    if (
        ledger.called_outside
        and final not in ("", texts.initial_point.text)
        and not is_repeated
    ):
        findings.error(
            "call-outside-cycle",
            f"the call is outside of a cycle, so its task runs once, and never at the other "
            f"points up to final={final!r}",
            'write it under \'with flow.cycle("P1"):\', or "P1D" for dates; if it is meant to '
            "run once, leave out final=",
            ledger.called_outside,
        )


# The statements of a workflow become the sections of a definition, as graph text does.


@dataclass(frozen=True, slots=True)
class StatementReader:
    """Checks the outputs and families in statements against the declared ones."""

    nodes: Mapping[str, definition.NodeDef]
    members: Mapping[str, tuple[str, ...]]
    findings: Findings

    def mended(self, chains: Iterable[Chain]) -> Iterator[Chain]:
        for chain in chains:
            for left, right in pairwise(chain.sides):
                self._check_elements(left, right)
            yield Chain(tuple(self._mended(side) for side in chain.sides), chain.position)

    def _check_elements(self, left: Expression, right: Expression) -> None:
        """Reports a task that waits for an output of elements, and does not say of how many."""
        after = {parameter_of(token.text) for token in nodes_of(right)}
        for token in nodes_of(left):
            own, output = parameter_of(token.text), token.qualifier
            if own and output in STANDARD and output != SUCCEEDED and after != {own}:
                name = token.text.partition("<")[0]
                word = str(output).replace("-", "_")
                self.findings.error(
                    "mapped-task",
                    f"{name}.{word} does not say if all or any of {token.text} are meant",
                    f"write results = {name}.map(…), and then results.any.{word} or "
                    f"results.all.{word}",
                    token.position,
                )

    def _mended(self, side: Expression) -> Expression:
        """Returns a side with success in place of each output that its task lacks. Each of them
        is reported, in Python's words."""
        if not isinstance(side, Token):
            return type(side)(tuple(self._mended(term) for term in side.terms))
        if side.kind is not GraphTokenKind.NODE:
            return side
        if side.text in self.members:
            self._check_members(side)
            return side
        of_elements = parameter_of(side.text) and side.qualifier in FAMILY_QUALIFIERS
        if side.qualifier is None or side.text not in self.nodes or of_elements:
            return side
        known = (*STANDARD, FINISHED, *dict(self.nodes[side.text].outputs))
        if side.qualifier in known:
            return side
        near = get_close_matches(side.qualifier, known, n=1)
        guess = f"did you mean {near[0]!r}? Or declare it" if near else "declare it"
        seen = f"{side.text} has no output {side.qualifier!r}"
        hint = f"{guess}: flow.task({side.text!r}, outputs={{{side.qualifier!r}: 'message'}})"
        self.findings.error("unknown-output", seen, hint, side.position)
        return side._replace(qualifier=None)

    def _check_members(self, family: Token) -> None:
        if not self.members[family.text]:
            seen = f"the family {family.text} has no members"
            hint = f"make some: flow.task('name', family={family.text})"
            self.findings.error("empty-family", seen, hint, family.position)


# Declared tasks and families become nodes, which inherit what their families say.

Read = TypeVar("Read")


class NodeNames:
    """Says what tasks are called in the graph: those that are mapped have a parameter."""

    def __init__(self, ledger: StatementLog) -> None:
        self._nodes = {task: node_of(ledger, task) for task in ledger.mapped}
        self._tasks = {node: task for task, node in self._nodes.items()}

    def of(self, task: str) -> str:
        return self._nodes.get(task, task)

    def task(self, node: str) -> str:
        return self._tasks.get(node, node)

    def chains(self, chains: Iterable[Chain]) -> Iterator[Chain]:
        for chain in chains:
            yield Chain(tuple(map(self._side, chain.sides)), chain.position)

    def _side(self, side: Expression) -> Expression:
        if isinstance(side, Token):
            return side._replace(text=self.of(side.text))
        return type(side)(tuple(map(self._side, side.terms)))

    def declared(self, one: Declared) -> Declared:
        """Returns a task or family whose name and inputs are those of the graph."""
        inputs = cast("Mapping[str, str]", one.values.get("inputs", {}))
        own = {name: self._reference(text) for name, text in inputs.items()}
        values = {**one.values, "inputs": own} if own else one.values
        return replace(one, name=self.of(one.name), values=values)

    def _reference(self, text: str) -> str:
        """Returns `process<file>.rows` of `process.rows`."""
        task = next((one for one in self._nodes if _names(text, one)), "")
        return f"{self.of(task)}{text[len(task) :]}" if task else text


def _names(reference: str, task: str) -> bool:
    return reference == task or reference.startswith((f"{task}.", f"{task}["))


class Resolver:
    """Makes nodes of declared tasks, with what they inherit.

    Tasks with the same ancestors share the inherited values.
    """

    def __init__(
        self, declared: Declarations, ledger: StatementLog, findings: Findings
    ) -> None:
        self.names = NodeNames(ledger)
        self._declared = self.declared = {
            self.names.of(name): self.names.declared(one)
            for name, one in declared.by_name.items()
        }
        self._functions = {self.names.of(one): f for one, f in ledger.functions.items()}
        self._folder = ledger.folder
        self._arguments = {
            self.names.of(name): inputs
            for name, inputs in read_arguments(ledger, declared, findings).items()
        }
        self._findings = findings
        self._families = self._arrange()
        owns = {name: [one.values] for name, one in self._declared.items()}
        self._inheritance = Inheritance(owns)
        self.members: dict[str, tuple[str, ...]] = {
            name: tuple(
                one
                for one in self._families.members.get(name, ())
                if not self._declared[one].is_family
            )
            for name, node in self._declared.items()
            if node.is_family and name != ROOT
        }

    def _arrange(self) -> Families:
        parents = {name: one.parents for name, one in self._declared.items()}
        first = {name: named[0] for name, named in parents.items() if named}
        families, problems = arrange(parents, first)
        for problem in problems:
            seen = f"the families of {problem.name}: {problem.message}"
            self._findings.error(
                "bad-inheritance", seen, problem.hint, self._declared[problem.name].position
            )
        return families

    def tasks(self) -> dict[str, definition.NodeDef]:
        nodes = {
            name: self.node(name) for name, one in self._declared.items() if not one.is_family
        }
        check_tasks(nodes.values(), {}, self._findings)
        return nodes

    def node(self, name: str) -> definition.NodeDef:
        declared, lineage = self._declared[name], self._families.lineages[name]
        if name in self._functions and "script" in declared.values:
            seen = f"{name} has a function, and a script or a command as well"
            self._findings.error("two-scripts", seen, "keep one of them", declared.position)
        groups = self._inheritance.of(lineage[1:]).extended([self.own_values(name)]).groups
        return definition.NodeDef(
            name=name, lineage=lineage, position=declared.position, **groups
        )

    def own_values(self, name: str) -> Values:
        """Returns what a task or family says itself: its settings, and the call of its
        function."""
        values, function = self._declared[name].values, self._functions.get(name)
        if function is None:
            return values
        task = self.names.task(name)
        called: Values = {"script": script_of(function, task, self._folder)}
        if name in self._arguments:
            own = cast("Values", values.get("inputs", {}))
            called["inputs"] = own | self._arguments[name]
        return values | called

    def families(self) -> dict[str, definition.FamilyDef]:
        return {
            name: definition.FamilyDef(name, members, self._families.drawn_in(name))
            for name, members in self.members.items()
        }

    def special_nodes(self, reader: CyclingReader) -> definition.SpecialNodes:
        def interval(text: object) -> Interval:
            return reader.interval(str(text))

        return definition.SpecialNodes(
            sequential=frozenset(name for name, on in self.special("sequential", bool) if on),
            wait_for_clock=dict(self.special("wait_for_clock", interval)),
            expire_after=dict(self.special("expire_after", interval)),
            wait_for_message=dict(self.special("wait_for_message", str)),
        )

    def special(self, word: str, read: Callable[[object], Read]) -> Iterator[tuple[str, Read]]:
        """Yields each task that has a special setting, of its own or of the nearest family."""
        assert word in SPECIAL
        said = {
            name: one.values[word] for name, one in self._declared.items() if word in one.values
        }
        for name, one in self._declared.items():
            if one.is_family or not said:
                continue
            nearest = next((who for who in self._families.lineages[name] if who in said), None)
            if nearest is None:
                continue
            try:
                yield name, read(said[nearest])
            except BadCycling as bad:
                self._findings.error(
                    "bad-value", f"{name}: {word}: {bad.message}", bad.hint, one.position
                )


# The definition.


def assemble(
    ledger: StatementLog,
    declared: Declarations,
    settings: FlowSettings,
    options: ReadOptions,
    findings: Findings,
) -> definition.WorkflowDef | None:
    """Returns the definition as far as it is understood; None if it has no usable points."""
    resolver = Resolver(declared, ledger, findings)
    nodes = resolver.tasks()
    _check_calls(ledger, settings.scheduling, findings)
    read = read_points(settings, ledger.sections, options, findings)
    if read is None:
        return None
    reader, cycling = read
    statements, names = StatementReader(nodes, resolver.members, findings), resolver.names
    graph = GraphReader(reader, cycling, resolver.members, findings).read(
        (section.recurrence, statements.mended(names.chains(section.chains)), section.position)
        for section in ledger.sections.values()
    )
    special = resolver.special_nodes(reader)
    return definition.WorkflowDef(
        name=ledger.workflow,
        cycling=cycling,
        sections=graph.sections,
        nodes=nodes,
        families=resolver.families(),
        marks=graph.marks,
        xtriggers=dict(declared.xtriggers),
        limit_groups=definition.limit_groups(
            {
                name: (one.limit, tuple(map(names.of, one.members)))
                for name, one in declared.limits.items()
            },
            resolver.members,
        ),
        special=special,
        inputs=read_inputs(nodes, reader, findings),
        mapped=read_mapped(
            lists_of(ledger),
            nodes,
            special.sequential,
            graph.sections,
            options.policy,
            findings,
        ),
        root=resolver.node(ROOT),
        policy=options.policy,
        is_whole=graph.is_whole,
    )


def lists_of(ledger: StatementLog) -> dict[str, ListSource]:
    """Returns the lists that tasks are mapped over, by parameter."""
    return {
        one.parameter: ListSource(
            one.source, one.value, one.elements_max or definition.ELEMENTS_DEFAULT
        )
        for one in ledger.lists.values()
    }


def check_idle(definition: definition.WorkflowDef, graph: Graph, findings: Findings) -> None:
    """Reports tasks of the graph that would succeed without doing anything.

    In Python a name is a task as soon as it is said, so that a misspelt one is empty. Where
    no task does anything, the workflow is a sketch of a graph.
    """
    working = [name for name, node in definition.nodes.items() if gives_something_to_do(node)]
    if not working:
        return
    lookalikes = Lookalikes((*working, *definition.families))
    for name, node in definition.nodes.items():
        if name not in graph.nodes or gives_something_to_do(node):
            continue
        meant = lookalikes.of(name)
        guess = f"did you mean {meant}? Or " if meant else ""
        seen = f"{name} has no function and no script: it would succeed without doing anything"
        hint = (
            f"{guess}give it a function or a script; if it only joins other tasks, write "
            f'flow.task("{name}", run_mode="skip")'
        )
        findings.error("idle-task", seen, hint, node.position)
