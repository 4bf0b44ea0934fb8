"""The compiler makes the graph of a definition. It judges nothing: that is the checks' part.

What is wrong with a definition is found by `tidewheel.core.graph.checks` on the result, so that
one pass over a broken definition finds everything that is wrong with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import field, replace
from typing import TypeVar

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.cycling.offset import Offset
from tidewheel.core.cycling.sequence import Sequence
from tidewheel.core.graph import completion as completions
from tidewheel.core.graph.definition import (
    AllOf,
    Arrow,
    Atom,
    Condition,
    FamilyDef,
    Group,
    MappedOver,
    NodeDef,
    OutputMark,
    WorkflowDef,
    XtriggerTerm,
    all_of,
    leaves,
)
from tidewheel.core.graph.findings import Findings
from tidewheel.core.graph.graph import (
    CompiledArrow,
    CountedGroup,
    Graph,
    Link,
    Node,
    NodesWithElements,
)
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.lazy_dataclasses import dataclass

Item = TypeVar("Item")
_GroupKey = tuple[str, tuple[str, ...], bool]


@dataclass(slots=True)
class _NodeDraft:
    """Holds what is known of a node while the arrows are being read."""

    sequences: dict[int, Sequence] = field(init=False, default_factory=dict)  # by id
    arrows: list[int] = field(init=False, default_factory=list)
    suicides: list[int] = field(init=False, default_factory=list)
    links: dict[str, list[Link]] = field(init=False, default_factory=dict)
    groups: dict[str, list[int]] = field(init=False, default_factory=dict)
    xtriggers: dict[tuple[Sequence, str], None] = field(init=False, default_factory=dict)
    marks: list[OutputMark] = field(init=False, default_factory=list)
    used: dict[str, None] = field(init=False, default_factory=dict)  # of its outputs, by arrows


class _Compiler:
    """Collects drafts of nodes, arrows and groups from the sections of a definition."""

    def __init__(self, workflow: WorkflowDef) -> None:
        self._workflow = workflow
        self._initial = workflow.cycling.initial
        # All elements of a mapped task are a group: its only member is the mapped task itself.
        self.families = {
            **workflow.families,
            **{name: FamilyDef(name, (name,)) for name in workflow.mapped},
        }
        self.nodes: dict[str, _NodeDraft] = defaultdict(_NodeDraft)
        self.arrows: list[CompiledArrow] = []
        self.groups: dict[_GroupKey, list[Link]] = {}
        self.absolute: dict[tuple[str, Point, str], list[int]] = {}
        self._group_index: dict[_GroupKey, int] = {}

    def read(self) -> None:
        nodes = self.nodes
        known: dict[Sequence, Sequence] = {}
        for section in self._workflow.sections:
            sequence = known.setdefault(section.sequence, section.sequence)
            key = id(sequence)
            for placement in section.placements:
                nodes[placement[0]].sequences[key] = sequence
            for arrow in section.arrows:
                self._read_arrow(sequence, arrow)
        for mark in self._workflow.marks:
            nodes[mark[0]].marks.append(mark)
        for template, over in self._workflow.mapped.items():
            if template in self.nodes:
                self._wait_for_source(template, over)

    def _wait_for_source(self, template: str, over: MappedOver) -> None:
        """Lets a mapped task wait for its list wherever the graph does not say so: by its
        source, or by an element of another task over the same list."""
        draft = self.nodes[template]
        for sequence in list(draft.sequences.values()):
            arrows = [self.arrows[index] for index in draft.arrows]
            if not any(
                one.sequence == sequence and self._comes_after(one.condition, over)
                for one in arrows
            ):
                self._read_arrow(sequence, Arrow(Atom(over.source, SUCCEEDED), (template,)))

    def _comes_after(self, condition: Condition, over: MappedOver) -> bool:
        terms = condition.terms if isinstance(condition, AllOf) else (condition,)
        atoms = [one for one in terms if isinstance(one, Atom) and one.offset is None]
        return any(
            one == Atom(over.source, SUCCEEDED) or self._workflow.mapped.get(one.node) == over
            for one in atoms
        )

    def _read_arrow(self, sequence: Sequence, arrow: Arrow) -> None:
        condition: Condition | None = arrow.condition
        targets, suicide, labels = arrow.targets, arrow.suicide, None
        if type(condition) is not Atom:
            condition, labels = _without_xtriggers(arrow.condition)
        index, key = len(self.arrows), id(sequence)
        for target in targets:
            draft = self.nodes[target]
            if not suicide:
                draft.sequences[key] = sequence
            for label in labels or ():
                draft.xtriggers.setdefault((sequence, label))
            if condition is not None:
                (draft.suicides if suicide else draft.arrows).append(index)
        if condition is None:
            return
        self.arrows.append(CompiledArrow(sequence, condition, targets, suicide, arrow.position))
        if type(condition) is Atom:
            self._read_atom(condition, index)
            return
        found = leaves(condition)
        for leaf in found if len(found) == 1 else dict.fromkeys(found):
            if isinstance(leaf, Atom):
                self._read_atom(leaf, index)
            else:
                assert isinstance(leaf, Group), "xtriggers were taken out above"
                self._read_group(leaf, index)

    def _read_atom(self, atom: Atom, arrow: int) -> None:
        draft, output, offset = self.nodes[atom.node], atom.output, atom.offset
        draft.used[output] = None
        if offset is not None and (point := self._absolute_point(offset)) is not None:
            self.absolute.setdefault((atom.node, point, output), []).append(arrow)
            return
        link = tuple.__new__(Link, (arrow, offset))
        if output in draft.links:
            draft.links[output].append(link)
        else:
            draft.links[output] = [link]

    def _read_group(self, group: Group, arrow: int) -> None:
        members = self.families[group.family].members
        if self._absolute_point(group.offset) is not None:
            for member in members:
                for output in group.outputs:
                    self._read_atom(Atom(member, output, group.offset), arrow)
            return
        key = (group.family, group.outputs, group.every)
        if key not in self.groups:
            self.groups[key] = []
            self._group_index[key] = len(self._group_index)
            for member in members:
                draft = self.nodes[member]
                for output in group.outputs:
                    draft.used.setdefault(output)
                    draft.groups.setdefault(output, []).append(self._group_index[key])
        self.groups[key].append(Link(arrow, group.offset))

    def _absolute_point(self, offset: Offset | None) -> Point | None:
        if offset is None or not offset.is_absolute:
            return None
        return offset.parent_point(self._initial, self._initial)


def compile_workflow(workflow: WorkflowDef, findings: Findings) -> Graph:
    """Returns the graph of a definition; what contradicts itself in it becomes a finding."""
    compiler = _Compiler(workflow)
    compiler.read()
    nodes = dict(_nodes(workflow, compiler, findings))
    return Graph(
        name=workflow.name,
        cycling=workflow.cycling,
        nodes=NodesWithElements(nodes, workflow.mapped) if workflow.mapped else nodes,
        arrows=tuple(compiler.arrows),
        groups=tuple(
            CountedGroup(*key, links=tuple(links)) for key, links in compiler.groups.items()
        ),
        families=compiler.families,
        xtriggers=workflow.xtriggers,
        limit_groups=workflow.limit_groups,
        special=workflow.special,
        absolute_links={key: tuple(arrows) for key, arrows in compiler.absolute.items()},
        policy=workflow.policy,
        inputs=workflow.inputs,
        mapped=workflow.mapped,
    )


def _nodes(
    workflow: WorkflowDef, compiler: _Compiler, findings: Findings
) -> Iterator[tuple[str, Node]]:
    for name, draft in compiler.nodes.items():
        defined = workflow.nodes.get(name)
        definition = defined or replace(workflow.root, name=name, lineage=(name, "root"))
        yield (
            name,
            Node(
                name,
                definition,
                _completion(definition, draft, workflow, findings),
                tuple(draft.sequences.values()),
                tuple(draft.arrows),
                tuple(draft.suicides),
                _frozen(draft.links) if draft.links else {},
                _frozen(draft.groups) if draft.groups else {},
                tuple(draft.xtriggers),
                defined is None,
            ),
        )


def _completion(
    definition: NodeDef, draft: _NodeDraft, workflow: WorkflowDef, findings: Findings
) -> completions.Completion:
    derived = completions.completion_of(
        definition.name,
        draft.marks,
        draft.used,
        marked_by_policy=workflow.policy.marks_apply_to_all or bool(definition.completion),
        findings=findings,
    )
    if not definition.completion:
        return derived
    try:
        return completions.read_completion(definition.completion, dict(definition.outputs))
    except completions.BadCompletion as bad:
        findings.error(
            "completion",
            f"completion of {definition.name}: {bad}",
            "write outputs joined by 'and' and 'or', for example: succeeded or failed",
            definition.position,
        )
        return derived


def _without_xtriggers(condition: Condition) -> tuple[Condition | None, list[str]]:
    """Returns a condition without its xtriggers (None if nothing is left), and their labels.
    The task itself waits for all of its xtriggers, beside its arrows."""
    if isinstance(condition, XtriggerTerm):
        return None, [condition.label]
    if not isinstance(condition, AllOf):
        return condition, []
    labels = [term.label for term in condition.terms if isinstance(term, XtriggerTerm)]
    rest = tuple(term for term in condition.terms if not isinstance(term, XtriggerTerm))
    return (all_of(rest) if rest else None), labels


def _frozen(lists: dict[str, list[Item]]) -> dict[str, tuple[Item, ...]]:
    return {key: tuple(items) for key, items in lists.items()}
