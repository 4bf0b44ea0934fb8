"""A submission of a run as one task of the store: its id, its script, its time limit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote
from types import MappingProxyType
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, uuid5

from tidewheel.core.graph.node import NodeDef, Pairs
from tidewheel.core.operator.names import DEFINITION, JobName
from tidewheel.core.queue.task import PRIORITY_DEFAULT, NewTask
from tidewheel.platforms import Platform
from tidewheel.scheduler.job_script import (
    dummy_node,
    facts_text,
    node_text,
    polling_node,
)
from tidewheel.scheduler.placement import ANY_WORKER, job_place
from tidewheel.services.rehearsal.assumptions import is_simulated_to_fail, simulated_seconds

if TYPE_CHECKING:
    from tidewheel.scheduler.container_stage import ContainerStage

SHEBANG = "#!/usr/bin/env bash\n"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

XtriggerResults = tuple[tuple[str, Mapping[str, object]], ...]  # (label, result)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What every job of a run is told; points are texts."""

    number: int
    name: str
    workflow: str
    queue: str
    initial: str
    final: str  # "": it has none
    cycling_mode: str  # integer, gregorian, 360day, …
    start: str = ""  # "": the initial point
    utc: bool = False
    dummy: bool = False
    uuid: str = ""  # "": made from name and number
    definition: str = ""  # its digest; "": nobody needs to know
    priority: int = PRIORITY_DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """What is told to one job alone."""

    point: str
    submit: int
    try_number: int
    flows: frozenset[int]
    xtriggers: XtriggerResults = ()


class JobWriter:
    """Makes the tasks of one run. What is the same for many jobs is put together once."""

    def __init__(
        self, facts: RunFacts, platforms: Mapping[str, Platform] = MappingProxyType({})
    ) -> None:
        self._run = facts
        self._platforms = platforms
        self._head = _run_text(facts)
        # The last of each name: a broadcast makes a new node each time that it is asked for.
        self._texts: dict[str, tuple[NodeDef, str]] = {}

    def new_task(self, node: NodeDef, facts: JobFacts) -> NewTask:
        """One submission; `node` is as broadcasts have left it."""
        run = self._run
        place = job_place(node, self._platforms)
        if run.dummy:
            place = ANY_WORKER
            fails = is_simulated_to_fail(node, facts.point, facts.try_number)
            node = dummy_node(node, simulated_seconds(node), fails=fails)
        name = JobName(run.name, facts.point, node.name, facts.submit)
        return NewTask(
            id=name.task_id,
            queue=run.queue,
            run=run.number,
            command=f"{SHEBANG}{place.head}{self._head}{_job_text(name, facts)}\n"
            f"{self._node_text(node, facts)}",
            priority=run.priority,
            timeout_seconds=place.timeout_seconds,
            resources=place.resources,
        )

    def new_container_task(
        self, node: NodeDef, facts: JobFacts, stage: ContainerStage
    ) -> NewTask:
        """The same for a stage that runs as containers, whatever else is in its command."""
        run = self._run
        name = JobName(run.name, facts.point, node.name, facts.submit)
        return NewTask(
            id=name.task_id,
            queue=run.queue,
            run=run.number,
            command=f"{SHEBANG}{self._head}{_job_text(name, facts)}\n{stage.command}",
            spec=stage.spec,
            priority=run.priority,
            timeout_seconds=node.time_limit_seconds or None,
            resources=stage.resources,
        )

    def _node_text(self, node: NodeDef, facts: JobFacts) -> str:
        if facts.xtriggers:
            return _node_text(node, _results(facts.xtriggers))
        known = self._texts.get(node.name)
        if known is None or known[0] is not node:
            known = self._texts[node.name] = (node, _node_text(node, ()))
        return known[1]


def _run_text(run: RunFacts) -> str:
    uuid = run.uuid or str(uuid5(NAMESPACE_URL, f"tidewheel:{run.name}#{run.number}"))
    facts = {
        "WORKFLOW_ID": run.name,
        "WORKFLOW_NAME": run.workflow,
        "WORKFLOW_UUID": uuid,
        "WORKFLOW_INITIAL_CYCLE_POINT": run.initial,
        # Existing scripts compare it with this word.
        "WORKFLOW_FINAL_CYCLE_POINT": run.final or "None",
        "WORKFLOW_START_CYCLE_POINT": run.start or run.initial,
        "CYCLING_MODE": run.cycling_mode,
        "UTC": str(run.utc),
    }
    if run.definition:
        facts[DEFINITION] = run.definition
    return f"{facts_text(facts)}\n"


def _job_text(name: JobName, facts: JobFacts) -> str:
    flows = ",".join(map(str, sorted(facts.flows)))
    return (
        f"TIDEWHEEL_TASK_CYCLE_POINT={quote(name.point)}\n"
        f"TIDEWHEEL_TASK_NAME={quote(name.node)}\n"
        f"TIDEWHEEL_TASK_SUBMIT_NUMBER={name.submit}\n"
        f"TIDEWHEEL_TASK_TRY_NUMBER={facts.try_number}\n"
        f"TIDEWHEEL_TASK_FLOW_NUMBERS={flows}"
    )


def _node_text(node: NodeDef, results: Pairs) -> str:
    return node_text(polling_node(node) if node.polling.target else node, results)


def _results(xtriggers: XtriggerResults) -> Pairs:
    """A function may answer with any keys; those that no shell accepts are left out."""
    named = (
        (f"{label}_{key}", str(value))
        for label, result in xtriggers
        for key, value in result.items()
    )
    return tuple((name, value) for name, value in named if _VARIABLE.fullmatch(name))
