"""Makes the tasks of the queue out of the core's wishes to run a task.

`EffectiveSettings` has the node of a task as broadcasts have left it. `JobWriter` writes one
submission as a task: its id, its bash script, its time limit. `Submissions` gives it the node,
or the stage of a SIP definition.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from shlex import quote
from types import MappingProxyType
from typing import TYPE_CHECKING

from tidewheel.core.graph.definition import ANYWHERE, NodeDef, Pairs, RunMode, Scripts
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.shown_names import WrittenPoints
from tidewheel.core.operator.definition import (
    DEFINITION,
    JOB_OUTPUTS,
    JobName,
    StoredDefinition,
)
from tidewheel.core.operator.requests import StoredBroadcast
from tidewheel.core.operator.task_inputs import NO_INPUTS, Inputs, files_named
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.resources import NO_RESOURCES
from tidewheel.core.queue.secret_references import is_reference
from tidewheel.core.queue.task import PRIORITY_DEFAULT, NewTask
from tidewheel.core.sched.events import Submit
from tidewheel.core.sched.task_state import Key
from tidewheel.lazy_dataclasses import NamedTuple, dataclass, pattern
from tidewheel.platforms import Platform
from tidewheel.scheduler.broadcasts import EVERY_POINT, settings_for, with_settings
from tidewheel.scheduler.placement import ANY_WORKER, JobPlace, job_place
from tidewheel.scheduler.xtriggers import Xtriggers
from tidewheel.services.definitions.snapshot import RestoredDefinition
from tidewheel.services.rehearsal.assumptions import is_simulated_to_fail, simulated_seconds

if TYPE_CHECKING:
    from tidewheel.formats.sip.stage_renderer import RenderedStage
    from tidewheel.formats.sip.translation import StageParts


SHEBANG = "#!/usr/bin/env bash\n"
NO_WISHES = (ANYWHERE, NO_RESOURCES, None)  # of a node whose jobs any worker may run
WORDS_KNOWN_MAX = 1_024  # points and names, with the quotes that a shell needs
_VARIABLE = pattern(r"[A-Za-z_][A-Za-z0-9_]*")

JobXtriggers = tuple[tuple[str, Mapping[str, object]], ...]  # (label, result)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Holds the facts that every job of a run is told; points are texts."""

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
    """Holds the facts that one job alone is told."""

    point: str
    submit: int
    try_number: int
    flows: frozenset[int]
    xtriggers: JobXtriggers = ()
    inputs: Inputs = NO_INPUTS


class DefinitionInForce(NamedTuple):
    """Holds the definition of a run, as its components get it at the start and after a
    reload."""

    stored: StoredDefinition
    restored: RestoredDefinition


class EffectiveSettings:
    """Holds the settings of tasks to come; without broadcasts, those of the definition."""

    def __init__(self, graph: Graph, mode: str, broadcasts: Iterable[StoredBroadcast]) -> None:
        self._graph = graph
        self.mode = RunMode(mode)  # of the run; in a live one each node has its own
        # By point: xtriggers leave a few for each, and a task asks for its own point only.
        self._by_point: dict[str, dict[tuple[str, str], StoredBroadcast]] = {}
        for one in broadcasts:
            self.put(one)

    def reload(self, new: DefinitionInForce) -> None:
        """Takes another definition; what was broadcast stays."""
        self._graph = new.restored.graph

    def put(self, one: StoredBroadcast) -> None:
        """Sets a broadcast, or takes it back if it has no value.

        It goes last, because the latest counts most.
        """
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
    def broadcasts(self) -> list[StoredBroadcast]:
        return [one for there in self._by_point.values() for one in there.values()]

    def node(self, key: Key, parts: StageParts | None = None) -> NodeDef:
        """Returns a task's node with what was broadcast; ``parts`` first replace its own."""
        known = self._graph.nodes.get(key[1])
        if known is None:  # a reload removed it; its job may not know
            return NodeDef(name=key[1])
        node = known.definition
        if parts is not None:
            node = replace(node, **parts)
        if not self._by_point:
            return node
        text = self._graph.cycling.style.text(key[0])
        there = (self._by_point.get(point, {}) for point in (EVERY_POINT, text))
        found = [one for rows in there for one in rows.values()]
        if not found:
            return node
        settings = settings_for(found, text, node.lineage or (node.name,))
        return with_settings(node, settings) if settings else node

    def nodes_with(self, rows: Sequence[StoredBroadcast]) -> list[NodeDef]:
        """Returns the nodes that these broadcasts concern, each as it would be with them."""
        after = EffectiveSettings(self._graph, self.mode, [*self.broadcasts, *rows]).broadcasts
        found: dict[tuple[str, str], NodeDef] = {}
        for one in rows:
            for name, known in self._graph.nodes.items():
                node = known.definition
                lineage = node.lineage or (name,)
                if one.namespace in lineage and (one.point, name) not in found:
                    settings = settings_for(after, one.point, lineage)
                    found[one.point, name] = with_settings(node, settings)
        return list(found.values())


class JobWriter:
    """Makes the tasks of one run; text that is the same for many jobs is put together once."""

    def __init__(
        self, facts: RunFacts, platforms: Mapping[str, Platform] = MappingProxyType({})
    ) -> None:
        self._run = facts
        self._platforms = platforms
        self._head = _run_text(facts)
        # Only the last text of each name: with a broadcast every call brings a new node.
        self._texts: dict[str, tuple[NodeDef, str]] = {}

    def new_task(self, node: NodeDef, facts: JobFacts) -> NewTask:
        """Returns the task of one submission; `node` is as broadcasts have left it."""
        place = ANY_WORKER
        if self._run.dummy:
            fails = is_simulated_to_fail(node, facts.point, facts.try_number)
            node = dummy_node(node, simulated_seconds(node), fails=fails)
        elif (node.place, node.resources, node.time_limit_seconds) != NO_WISHES:
            place = job_place(node, self._platforms)
        if facts.xtriggers or facts.inputs is not NO_INPUTS:
            text = node_text(node, _results(facts.xtriggers), facts.inputs)
        else:
            known = self._texts.get(node.name)
            if known is None or known[0] is not node:
                known = self._texts[node.name] = (node, node_text(node))
            text = known[1]
        return self.task(node, facts, text, place)

    def task(self, node: NodeDef, facts: JobFacts, text: str, place: JobPlace) -> NewTask:
        """Returns the task of one submission with this text, for workers of this place."""
        run = self._run
        name = JobName(run.name, facts.point, node.name, facts.submit)
        flows = ",".join(map(str, sorted(facts.flows)))
        head = (
            f"{SHEBANG}{place.head}{self._head}"
            f"TIDEWHEEL_TASK_CYCLE_POINT={_quoted(name.point)}\n"
            f"TIDEWHEEL_TASK_NAME={_quoted(name.node)}\n"
            f"TIDEWHEEL_TASK_SUBMIT_NUMBER={name.submit}\n"
            f"TIDEWHEEL_TASK_TRY_NUMBER={facts.try_number}\n"
            f"TIDEWHEEL_TASK_FLOW_NUMBERS={flows}"
        )
        secrets = {one: value for one, value in node.environment if is_reference(value)}
        return NewTask(
            id=name.task_id,
            queue=run.queue,
            run=run.number,
            command=f"{head}\n{text}",
            priority=run.priority,
            timeout_seconds=place.timeout_seconds,
            resources=place.resources,
            environment=json.dumps(secrets, sort_keys=True) if secrets else None,
        )


_quoted = lru_cache(maxsize=WORDS_KNOWN_MAX)(quote)  # points and names come again and again


def _made_uuid(name: str) -> str:
    from uuid import NAMESPACE_URL, uuid5

    return str(uuid5(NAMESPACE_URL, name))


def _run_text(run: RunFacts) -> str:
    uuid = run.uuid or _made_uuid(f"tidewheel:{run.name}#{run.number}")
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


def _results(xtriggers: JobXtriggers) -> Pairs:
    """Returns results as variables LABEL_KEY, without names that no shell accepts. A function
    may answer with any keys."""
    named = (
        (f"{label}_{key}", str(value))
        for label, result in xtriggers
        for key, value in result.items()
    )
    return tuple((name, value) for name, value in named if _VARIABLE.fullmatch(name))


def run_facts(run: RunView, definition: DefinitionInForce) -> RunFacts:
    """Returns the facts that every job of a run with this definition is told."""
    restored = definition.restored
    cycling = restored.graph.cycling
    text = WrittenPoints(cycling.style).__getitem__
    return RunFacts(
        number=run.number,
        name=run.name,
        workflow=run.workflow,
        queue=run.queue,
        initial=text(cycling.initial),
        final="" if cycling.final is None else text(cycling.final),
        start="" if cycling.start is None else text(cycling.start),
        cycling_mode=cycling.style.calendar.value,
        utc=bool(restored.settings.scheduler.utc_mode),
        dummy=run.options.mode == RunMode.DUMMY,
        definition=definition.stored.digest,
        # A run's own priority, 0 by default and at least -1, is added to that of tasks.
        priority=PRIORITY_DEFAULT + (run.options.priority or 0),
    )


class Submissions:
    """Makes the tasks of one run, with nodes as broadcasts have left them, or with stages."""

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
        """Replaces the definition by one that was reloaded."""
        self._text = WrittenPoints(new.restored.graph.cycling.style).__getitem__
        self._writer = JobWriter(run_facts(self._run, new), self._platforms)
        self._stages = new.restored.stages

    def new_task(
        self, one: Submit, node: NodeDef, mode: RunMode, inputs: Inputs = NO_INPUTS
    ) -> NewTask:
        """Returns the task of a submission that is given these values of earlier ones."""
        if self._stages is not None and mode is RunMode.LIVE:
            stage = self._stages.whole(node.name)
            if stage is not None and stage.compose is not None:
                return self.new_stage_task(one, stage)
        # What the task was given that this run is: compared where it is read, as any other.
        if given := self._run.options.files:
            files = (*inputs.files, *files_named(given, node_text(node)))
            inputs = replace(inputs, files=files) if files else inputs
        return self._writer.new_task(node, self._facts(one, inputs))

    def new_stage_task(self, one: Submit, rendered: RenderedStage) -> NewTask:
        """Returns the task of a stage that was rendered with all its values."""
        # These imports bring along all that reads SIP definitions: most runs have no stages.
        from tidewheel.formats.sip.translation import stage_parts
        from tidewheel.scheduler.container_stage import container_stage

        facts = self._facts(one)
        if rendered.compose is None:
            parts = stage_parts(one.task[1], rendered)
            return self._writer.new_task(self._settings.node(one.task, parts), facts)
        node = self._settings.node(one.task)
        assert self._stages is not None
        definition = self._stages.parameters.definition
        part = definition.part(node.name)
        assert part is not None, node.name
        containers = container_stage(definition, part[0], rendered, node)
        limit = node.time_limit_seconds or None
        place = JobPlace(resources=containers.resources, timeout_seconds=limit)
        task = self._writer.task(node, facts, containers.command, place)
        return replace(task, spec=containers.spec)

    def _facts(self, one: Submit, inputs: Inputs = NO_INPUTS) -> JobFacts:
        return JobFacts(
            point=self._text(one.task[0]),
            submit=one.submit,
            try_number=one.try_number,
            flows=one.flows,
            xtriggers=self._xtriggers.results_for(one.task) if self._xtriggers.is_used else (),
            inputs=inputs,
        )


# The functions below write the bash script of one submission (SEMANTICS §12).
#
# A script sets the facts of its job, reads the library that every job shares
# (`runners/job_library.sh`), and calls its parts. Whatever a person wrote is a function of its
# own, so that a script may `return` and declare variables of its own; texts are not changed.
#
# A node with an err-script or an exit-script has its parts run in a second shell, under the
# eyes of the first. All others run in the only shell there is: bash and the worker's wrapper
# tell the truth about exits and signals by themselves, and a second shell would be a third of
# the cost.


# In the order in which they run. As in Cylc, [environment] may use what the env-script has set.
_PARTS = (
    ("env_script", "env"),
    ("environment", ""),
    ("pre_script", "pre"),
    ("script", "main"),
    ("post_script", "post"),
)
_LAST_PARTS = (("err_script", "on_error"), ("exit_script", "on_exit"))
SCRIPTS_KNOWN_MAX = 32  # whose functions are kept
_NEEDS_GUARD = "cylc__job__disable_fail_signals"  # its caller handles failures itself

# Only a possible user's name stands without quotes, as values may come from outside.
_USERS_FOLDER = pattern(r"(~[\w.@+-]*/)(.*)", re.DOTALL | re.ASCII)
_USER = pattern(r"~[\w.@+-]*", re.ASCII)


def facts_text(facts: Mapping[str, str]) -> str:
    """Returns the facts of a job as assignments that the job library reads."""
    return "\n".join(f"TIDEWHEEL_{name}={quote(value)}" for name, value in facts.items())


def node_text(node: NodeDef, results: Pairs = (), inputs: Inputs = NO_INPUTS) -> str:
    """Returns the part of a script that is the same for all jobs of a node.

    `results` are those of xtriggers, as names and values. They and the inputs came from
    outside: they are taken as they are, never expanded, and count more than [environment].
    """
    results = (*results, *inputs.variables)
    if node.polling.target:
        node = polling_node(node)
    variables = ""
    if node.environment or results:
        variables = _environment_body(node.environment, results)
    # Families farthest first, as existing scripts expect it; what `message --output` may name.
    families, outputs = " ".join(reversed(node.lineage)), " ".join(dict(node.outputs))
    lines = [
        f"TIDEWHEEL_TASK_NAMESPACE_HIERARCHY={quote(families)}",
        f"export {JOB_OUTPUTS}={quote(outputs)}",
        '. "$TIDEWHEEL_JOB_LIBRARY"',
    ]
    for name, value in node.parameters:
        text = quote(str(value))
        lines.append(f"export CYLC_TASK_PARAM_{name}={text} TIDEWHEEL_TASK_PARAM_{name}={text}")
    if inputs.text:
        lines.append(f"tidewheel__inputs {quote(inputs.text)}")
    for task, (path, size, sha256) in inputs.files:
        lines.append(f"tidewheel__file {quote(path)} {size} {sha256} {quote(task)}")
    if node.place.work_subdirectory:
        lines.append(f'tidewheel__work_in "{node.place.work_subdirectory}"')
    return "\n".join([*lines, *_parts(node.scripts, variables)])


def dummy_node(node: NodeDef, seconds: float, *, fails: bool) -> NodeDef:
    """Returns the node as dummy mode runs it: it sleeps, sends its outputs' messages, ends."""
    lines = [f"sleep {seconds:g}"]
    if node.outputs:
        said = " ".join(quote(message) for _, message in node.outputs)
        lines.append(f'cylc message -- "$CYLC_WORKFLOW_ID" "$CYLC_TASK_JOB" {said}')
    if fails:
        lines.append(
            'echo "dummy mode: [simulation] fail cycle points makes this task fail" >&2; exit 1'
        )
    return replace(node, scripts=Scripts(main="\n".join(lines)), environment=())


def polling_node(node: NodeDef) -> NodeDef:
    """Returns a node whose script waits for a task of another workflow."""
    polling = node.polling
    workflow, _, rest = polling.target.partition("::")
    task, colon, output = rest.partition(":")
    words = ["cylc", "workflow-state"]
    if polling.message and not colon:
        selector, options = polling.message, ["--messages"]
    else:
        selector, options = output or "succeeded", []
    asked = f'{quote(f"{workflow}//")}"$CYLC_TASK_CYCLE_POINT"{quote(f"/{task}:{selector}")}'
    if polling.interval_seconds is not None:
        options.append(f"--interval={polling.interval_seconds:g}")
    if polling.polls_max is not None:
        options.append(f"--max-polls={polling.polls_max}")
    if polling.run_directory:
        options.append(f"--alt-cylc-run-dir={quote(polling.run_directory)}")
    command = " ".join([*words, asked, *options])
    scripts = replace(node.scripts, main=f"echo {quote(command)}\n{command}")
    return replace(node, scripts=scripts)


def assignment(name: str, value: str) -> str:
    """Returns the assignment of a variable of [environment], expanded as in double quotes.

    A `~` at its start is expanded, too.
    """
    in_folder = _USERS_FOLDER.fullmatch(value)
    if in_folder is not None:
        return f'{name}={in_folder[1]}"{in_folder[2]}"'
    return f"{name}={value}" if _USER.fullmatch(value) else f'{name}="{value}"'


def _environment_body(environment: Pairs, results: Pairs) -> str:
    taken = {name for name, _ in results}
    own = [(name, value) for name, value in environment if name not in taken]
    names = [name for name, _ in (*results, *own)]
    # First exported, then assigned: a command in a later value sees the earlier variables, and
    # one that fails ends the job, which `export NAME=$(…)` would hide.
    lines = ["export " + " ".join(names)]
    lines += [f"{name}={quote(value)}" for name, value in results]
    # The worker has put secrets there: their values are in no script.
    lines += [
        f"# {name} is a secret" if is_reference(value) else assignment(name, value)
        for name, value in own
    ]
    return "\n".join(lines)


@lru_cache(maxsize=SCRIPTS_KNOWN_MAX)  # many a task of a fan inherits all of them
def _parts(scripts: Scripts, environment: str) -> tuple[str, ...]:
    """Returns the parts of a script that do anything as functions, and then calls of them."""
    bodies = {"environment": environment} if environment else {}
    for name, item in (("init_script", "init"), *_PARTS, *_LAST_PARTS):
        text = getattr(scripts, item) if item else ""
        lines = (line.lstrip() for line in text.splitlines())
        # Without a command bash accepts no function.
        if any(line and not line.startswith("#") for line in lines):
            bodies[name] = text
    found = [f"tidewheel__{name}() {{\n{body}\n}}" for name, body in bodies.items()]
    names = [f"tidewheel__{name}" for name, _ in _PARTS if name in bodies]
    if "init_script" in bodies:
        found += [" ".join(["tidewheel__to_come", *names]), "tidewheel__init_script"]
    found += ["tidewheel__enter", "set -euo pipefail"]
    if "init_script" in bodies:
        found.append("tidewheel__say_started")
    if any(name in bodies for name, _ in _LAST_PARTS) or _NEEDS_GUARD in scripts.init:
        return (*found, " ".join(["tidewheel__guard", *names]))
    # Most have nothing but a script: no part of theirs can leave out a later one.
    if bodies.keys() - {"environment", "script"}:
        return (*found, " ".join(["tidewheel__one_by_one", *names]), "tidewheel__succeeded")
    return (*found, *names, "tidewheel__succeeded")
