"""Finds what SIP stages are given that are due: outputs of those before them, and elements.

It stands apart, since only SIP runs load all this.

Of each stage before, what its newest submission returned counts, but for lists of which
elements were made: these stay as they were. Of a stage with `for_each` a later one sees each
output as a list, in the order of the elements, if all of them have it; an element that follows
one of another stage sees that one's outputs alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from tidewheel.core.graph.definition import element_name
from tidewheel.core.operator.task_inputs import lists_in, sizes_in
from tidewheel.core.sched.events import Submit
from tidewheel.core.sched.task_state import Flows, Key
from tidewheel.formats.sip.model import PARAMETERS_BYTES_MAX, ListGiven, ListReturned, Stage
from tidewheel.formats.sip.parameters import StagePart, Values
from tidewheel.formats.sip.placeholders import Json
from tidewheel.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from tidewheel.scheduler.run_engine import RunEngine
    from tidewheel.services.definitions.sip import StageSource

NEWEST: Flows = frozenset()  # stages know no flows: whatever was returned last counts


@dataclass(frozen=True, slots=True)
class DueStage:
    """Holds a stage that is due, or an element of one, and what the stages before it made.

    The part is a text where there is none: why.
    """

    task: Key
    part: StagePart | str
    known: Mapping[str, Values]


@dataclass(frozen=True, slots=True)
class _Absent:
    """Says why there is no element."""

    why: str


class StageInputs:
    """Finds the values of stages that are due in one round."""

    def __init__(self, engine: RunEngine, source: StageSource) -> None:
        self._engine = engine
        self._definition = source.parameters.definition
        self._folders = source.parameters.folders
        self._point = engine.graph.cycling.initial
        self._found: dict[tuple[str, Flows], Mapping[str, Values]] = {}

    async def of(self, due: Iterable[Submit]) -> list[DueStage]:
        """Returns each of these with its values."""
        due = list(due)
        keys = dict.fromkeys(key for one in due for key in self._keys(one))
        await self._engine.values.fetch_for(self._engine.pool, keys)
        return [self._wanted(one) for one in due]

    def _keys(self, one: Submit) -> Iterator[Key]:
        stage, index = self._part(one)
        for other in self._before(stage):
            if self._definition.are_alongside(stage, other):
                assert index is not None
                yield self._point, other.part_name(index)
            else:
                yield from ((self._point, name) for name in self._tasks(other, one.flows))

    def _part(self, one: Submit) -> tuple[Stage, int | None]:
        found = self._definition.part(one.task[1])
        assert found is not None, one.task
        return found

    def _before(self, stage: Stage) -> Iterator[Stage]:
        for name in self._definition.upstream(stage.id):
            found = self._definition.stage(name)
            if found is not None and found.is_on:
                yield found

    def _tasks(self, stage: Stage, flows: Flows) -> list[str]:
        if not stage.is_mapped:
            return [stage.id]
        size = sizes_in(self._engine.pool, flows)(self._point, stage.node)
        return [element_name(stage.node, index) for index in range(size)]

    def _wanted(self, one: Submit) -> DueStage:
        stage, index = self._part(one)
        same = (stage.id, one.flows)  # for all elements
        if same not in self._found:
            others = [
                other
                for other in self._before(stage)
                if not self._definition.are_alongside(stage, other)
            ]
            made = ((other.id, self._made(other, stage, one.flows)) for other in others)
            self._found[same] = {name: values for name, values in made if values is not None}
        known = self._found[same]
        if index is None:
            return DueStage(one.task, StagePart(stage=stage), known)
        along = (
            other
            for other in self._before(stage)
            if self._definition.are_alongside(stage, other)
        )
        own = {other.id: self._values(other.part_name(index), one.flows) for other in along}
        item = self._item(stage, index, known)
        if isinstance(item, _Absent):
            return DueStage(one.task, item.why, known)
        made_for_it = {name: values for name, values in own.items() if values is not None}
        return DueStage(
            one.task, StagePart(stage=stage, index=index, item=item, made=made_for_it), known
        )

    def _item(self, stage: Stage, index: int, known: Mapping[str, Values]) -> Json | _Absent:
        """Returns an element of the list of a stage."""
        found = self._definition.list_of(stage)[1]
        items: Json | tuple[Json, ...] = None
        where = "its list"
        if isinstance(found, ListGiven):
            items = found.items
        elif isinstance(found, ListReturned):
            items = known.get(found.stage, {}).get(found.output)
            where = f"{found.stage}.{found.output}"
        if isinstance(items, list | tuple) and index < len(items):
            return items[index]
        return _Absent(
            f"stage {stage.id} needs element {index} of {where}, which does not exist now"
        )

    def _made(self, stage: Stage, child: Stage, flows: Flows) -> Values | None:
        """Returns the outputs of a stage; of one with elements those that all of them have.

        If these are too many, a later stage gets those that it declares.
        """
        if not stage.is_mapped:
            return self._values(stage.id, flows)
        every = [self._values(name, flows) or {} for name in self._tasks(stage, flows)]
        if not every:
            return {name: [] for name in self._folders[stage.id].outputs}
        names = [name for name in every[0] if all(name in one for one in every)]
        found: dict[str, Json] = {name: [one[name] for one in every] for name in names}
        folder = self._folders[child.id]
        if len(json.dumps(found)) > PARAMETERS_BYTES_MAX:
            asked = {*folder.defaults, *folder.required}
            return {name: values for name, values in found.items() if name in asked}
        return found

    def _values(self, name: str, flows: Flows) -> Values | None:
        key, pool = (self._point, name), self._engine.pool
        lists = lists_in(pool, key, flows) if pool.plan.mapped else {}
        node = pool.plan.nodes.get(name)
        is_element = node is not None and node.element is not None
        row = self._engine.values.of(key, flows if is_element else NEWEST, lists)
        return None if row is None else json.loads(row.body)
