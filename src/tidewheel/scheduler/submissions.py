"""Makes the tasks of the queue out of the core's wishes to run a task.

`JobWriter` writes one submission as a task: its id, its script, its time limit. `Submissions`
gives it the node as broadcasts have left it, or the stage of a SIP definition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote
from types import MappingProxyType
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, uuid5

from tidewheel.core.graph.node import NodeDef, Pairs, RunMode
from tidewheel.core.operator.names import DEFINITION, JobName
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.task import PRIORITY_DEFAULT, NewTask
from tidewheel.core.sched.effects import Submit
from tidewheel.platforms import Platform
from tidewheel.scheduler.broadcasts import DefinitionInForce, EffectiveSettings
from tidewheel.scheduler.job_script import (
    dummy_node,
    facts_text,
    node_text,
    polling_node,
)
from tidewheel.scheduler.placement import ANY_WORKER, job_place
from tidewheel.scheduler.xtriggers import Xtriggers
from tidewheel.services.rehearsal.assumptions import is_simulated_to_fail, simulated_seconds

if TYPE_CHECKING:
    from tidewheel.formats.sip.stage_renderer import RenderedStage
    from tidewheel.scheduler.container_stage import ContainerStage

SHEBANG = "#!/usr/bin/env bash\n"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

JobXtriggers = tuple[tuple[str, Mapping[str, object]], ...]  # (label, result)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """The facts that every job of a run is told; points are texts."""

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
    """The facts that one job alone is told."""

    point: str
    submit: int
    try_number: int
    flows: frozenset[int]
    xtriggers: JobXtriggers = ()


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
        """Makes one submission; `node` is as broadcasts have left it."""
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
        """Makes the same for a stage that runs as containers."""
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


def _results(xtriggers: JobXtriggers) -> Pairs:
    """A function may answer with any keys; those that no shell accepts are left out."""
    named = (
        (f"{label}_{key}", str(value))
        for label, result in xtriggers
        for key, value in result.items()
    )
    return tuple((name, value) for name, value in named if _VARIABLE.fullmatch(name))


class Submissions:
    """Makes the tasks of one run."""

    def __init__(
        self,
        run: RunView,
        definition: DefinitionInForce,
        settings: EffectiveSettings,
        xtriggers: Xtriggers,
        platforms: Mapping[str, Platform],
    ) -> None:
        self._platforms = platforms
        self._run = run
        self._settings = settings
        self._xtriggers = xtriggers
        self.reload(definition)

    def reload(self, new: DefinitionInForce) -> None:
        """Takes another definition."""
        digest, restored = new
        cycling = restored.graph.cycling
        self._text = cycling.style.text
        self._writer = JobWriter(
            RunFacts(
                number=self._run.number,
                name=self._run.name,
                workflow=self._run.workflow,
                queue=self._run.queue,
                initial=self._text(cycling.initial),
                final="" if cycling.final is None else self._text(cycling.final),
                start="" if cycling.start is None else self._text(cycling.start),
                cycling_mode=cycling.style.calendar.value,
                utc=bool(restored.settings.scheduler.utc_mode),
                dummy=self._run.options.mode == RunMode.DUMMY,
                definition=digest,
                priority=_priority(self._run.options.priority),
            ),
            self._platforms,
        )
        self._stages = restored.stages

    def new_task(self, one: Submit) -> NewTask:
        """Makes a task of any kind, as it is known before anything has run."""
        name = one.task[1]
        stage = None if self._stages is None else self._stages.whole(name)
        if stage is not None and stage.compose is not None and self._is_live(one):
            return self.new_stage_task(one, stage)
        return self._writer.new_task(self._settings.node(one.task), self._facts(one))

    def new_stage_task(self, one: Submit, rendered: RenderedStage) -> NewTask:
        """Makes the task of a stage with all its values."""
        # They bring along all that reads SIP definitions: most runs have no stages.
        from tidewheel.formats.sip.translation import stage_scripts  # noqa: PLC0415
        from tidewheel.scheduler.container_stage import (  # noqa: PLC0415
            container_stage,
        )

        facts = self._facts(one)
        if rendered.compose is None:
            scripts = stage_scripts(one.task[1], rendered)
            return self._writer.new_task(self._settings.node(one.task, scripts), facts)
        node = self._settings.node(one.task)
        assert self._stages is not None
        stage = self._stages.parameters.definition.stage(node.name)
        assert stage is not None, node.name
        containers = container_stage(stage, rendered, node)
        return self._writer.new_container_task(node, facts, containers)

    def _is_live(self, one: Submit) -> bool:
        return self._settings.mode(one.task) is RunMode.LIVE

    def _facts(self, one: Submit) -> JobFacts:
        return JobFacts(
            point=self._text(one.task[0]),
            submit=one.submit,
            try_number=one.try_number,
            flows=one.flows,
            xtriggers=self._xtriggers.results_for(one.task),
        )


def _priority(given: int | None) -> int:
    """Around that of all other tasks, from one below it: nothing said is 0."""
    return PRIORITY_DEFAULT + (given or 0)
