"""The settings that tasks of a run have: the definition in force, and what was broadcast."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.node import NodeDef, RunMode, Scripts
from tidewheel.core.operator.requests import Broadcast
from tidewheel.core.sched.states import Key
from tidewheel.scheduler.broadcasts import EVERY_POINT, settings_for, with_settings
from tidewheel.services.definitions.kept import RestoredDefinition


class DefinitionInForce(NamedTuple):
    """The definition that a run has from now on, for all that keep something of it."""

    digest: str
    restored: RestoredDefinition


class EffectiveSettings:
    """The settings of tasks to come. Without broadcasts a node is what the definition says."""

    def __init__(self, graph: Graph, mode: str, broadcasts: Iterable[Broadcast]) -> None:
        self._graph = graph
        self._mode = RunMode(mode)
        # By point: xtriggers leave a few for each, and a task asks for its own point only.
        self._by_point: dict[str, dict[tuple[str, str], Broadcast]] = {}
        for one in broadcasts:
            self.put(one)

    def reload(self, new: DefinitionInForce) -> None:
        """Takes another definition; what was broadcast stays."""
        self._graph = new.restored.graph

    def put(self, one: Broadcast) -> None:
        """Set, or without a value take back. The latest counts most, so it goes to the end."""
        there = self._by_point.setdefault(one.point, {})
        there.pop((one.namespace, one.setting), None)
        if one.value is not None:
            there[one.namespace, one.setting] = one
        elif not there:
            del self._by_point[one.point]

    @property
    def has_broadcasts(self) -> bool:
        return bool(self._by_point)

    @property
    def broadcasts(self) -> list[Broadcast]:
        return [one for there in self._by_point.values() for one in there.values()]

    def node(self, key: Key, scripts: Scripts | None = None) -> NodeDef:
        """``scripts`` are those of a task that is known only now; broadcasts count more."""
        known = self._graph.nodes.get(key[1])
        if known is None:  # a reload removed it; its job may not know
            return NodeDef(name=key[1])
        node = known.definition
        if scripts is not None:
            node = replace(node, scripts=scripts)
        if not self._by_point:
            return node
        text = self._graph.cycling.style.text(key[0])
        there = (self._by_point.get(point, {}) for point in (EVERY_POINT, text))
        found = [one for rows in there for one in rows.values()]
        if not found:
            return node
        settings = settings_for(found, text, node.lineage or (node.name,))
        return with_settings(node, settings) if settings else node

    def nodes_with(self, rows: Sequence[Broadcast]) -> list[NodeDef]:
        """Those that these broadcasts concern, each as it would be with them."""
        after = EffectiveSettings(self._graph, self._mode, [*self.broadcasts, *rows]).broadcasts
        found: dict[tuple[str, str], NodeDef] = {}
        for one in rows:
            for name, known in self._graph.nodes.items():
                node = known.definition
                lineage = node.lineage or (name,)
                if one.namespace in lineage and (one.point, name) not in found:
                    settings = settings_for(after, one.point, lineage)
                    found[one.point, name] = with_settings(node, settings)
        return list(found.values())

    def mode(self, key: Key) -> RunMode:
        """How a task is run: what the run says, unless it is live and the node says more."""
        if self._mode is not RunMode.LIVE:
            return self._mode
        return self.node(key).run_mode
