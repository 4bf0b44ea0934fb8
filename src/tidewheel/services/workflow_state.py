"""Finds the tasks of another run that have reached a state, for xtriggers and the command line.

A question is written as in Cylc, `WORKFLOW//POINT/TASK:SELECTOR`; the answer comes from the
store, whether a scheduler drives that run or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

from tidewheel.core.cycling.calendar import add
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.outputs import ENDS, FINISHED, STARTED, SUBMITTED, standard_name
from tidewheel.core.operator.definition import RunOptions
from tidewheel.core.operator.views import RunView, is_of_others
from tidewheel.core.sched.persistence import PooledTaskRow, PutMemory, PutTask
from tidewheel.core.sched.task_state import Flows, JobPhase, Key, VerdictKind
from tidewheel.errors import NotFound, Refused
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.ports.store import Store
from tidewheel.services.definitions.snapshot import RestoredDefinition, restore
from tidewheel.services.paths import run_directory

STATE_FUNCTIONS = ("workflow_state", "suite_state")
ID_ACCEPTED = "write WORKFLOW//POINT/TASK or WORKFLOW//POINT/TASK:SELECTOR"
SUCCEEDED = "succeeded"
EVERY = "*"

_NEW = (
    *("workflow_task_id", "offset", "flow_num", "is_trigger", "is_message"),
    "alt_cylc_run_dir",
)
_OLD = ("workflow", "task", "point", "offset", "status", "message", "cylc_run_dir")
_STAGES: dict[JobPhase, str] = {
    one: one.name.lower() for one in JobPhase if one is not JobPhase.INCOMPLETE
}
# Statuses that pass too quickly to be asked for: what is meant is the output that stays.
_LASTING = {"running": STARTED, "submitted": SUBMITTED, "started": STARTED}


class SelectedBy(StrEnum):
    """Names the facts that a selector can be compared with."""

    STATUS = "status"
    TRIGGER = "trigger"  # the names of outputs that were made
    MESSAGE = "message"  # the messages of outputs that were made


@dataclass(frozen=True, slots=True, kw_only=True)
class StateQuestion:
    """Holds a question: which tasks of a run are in a state; a selector of "" is any state."""

    workflow: str
    point: str = EVERY  # as people write it, or with *
    name: str = EVERY
    selector: str = ""
    by: SelectedBy = SelectedBy.STATUS
    offset: str = ""  # added to the point
    flow: int | None = None
    # What an xtrigger of before Cylc 8.3 gives as results: what it was called with.
    given: Mapping[str, str] = field(default_factory=dict)


class StateRow(NamedTuple):
    """Holds a task that fits the question; `outputs` are messages by name of the output."""

    point: str
    name: str
    status: str
    outputs: Mapping[str, str]
    flows: Flows


@dataclass(frozen=True, slots=True, kw_only=True)
class StateAnswer:
    """Holds the tasks that fit the question; `reason` says why nothing could be looked at."""

    rows: tuple[StateRow, ...] = ()
    results: Mapping[str, str] = field(default_factory=dict)
    run: str = ""
    reason: str = ""

    @property
    def satisfied(self) -> bool:
        return bool(self.rows)


DefinitionOf = Callable[[RunView], Awaitable[RestoredDefinition]]


# ---- questions ----


def question_of_id(
    text: str,
    *,
    default_selector: str = "",
    offset: str = "",
    flow: int | None = None,
    is_trigger: bool = False,
    is_message: bool = False,
) -> StateQuestion:
    """Returns the question that `WORKFLOW[//POINT[/TASK[:SELECTOR]]]` asks."""
    workflow, _, rest = text.partition("//")
    if workflow.startswith("~"):
        workflow = workflow.partition("/")[2]  # of which user is not our business
    if not workflow:
        raise Refused(f"{text!r} names no workflow; {ID_ACCEPTED}")
    place, _, selector = rest.partition(":")
    point, _, name = place.partition("/")
    if len(selector) > 1 and selector[0] == selector[-1] and selector[0] in "'\"":
        selector = selector[1:-1]
    selector = selector or default_selector
    by = SelectedBy.STATUS
    if is_message or is_trigger:
        by = SelectedBy.MESSAGE if is_message else SelectedBy.TRIGGER
    elif selector and selector not in (*ENDS, *_STAGES.values()):
        by = SelectedBy.TRIGGER  # no status is called so: it can only be an output
    elif selector in _LASTING:
        selector, by = _LASTING[selector], SelectedBy.TRIGGER
    return StateQuestion(
        workflow=workflow,
        point=point or EVERY,
        name=name or EVERY,
        selector=selector,
        by=by,
        offset=offset,
        flow=flow,
    )


def question_of_call(
    arguments: Sequence[object], keywords: Mapping[str, object]
) -> StateQuestion:
    """Returns the question of an xtrigger's call, written as now or as before Cylc 8.3."""
    keywords = {
        ("workflow" if name == "suite" else name): value for name, value in keywords.items()
    }
    if "workflow_task_id" in keywords or (arguments and "//" in str(arguments[0])):
        return _question_now(_bound(_NEW, arguments, keywords))
    return _question_then(_bound(_OLD, arguments, keywords))


def _question_now(given: Mapping[str, object]) -> StateQuestion:
    text = str(given["workflow_task_id"])
    flow = None if given.get("flow_num") is None else str(given["flow_num"])
    if flow is not None and not (flow.isascii() and flow.isdecimal()):
        raise Refused(f"flow_num={flow} is not a flow; write its number, as in flow_num=1")
    question = question_of_id(
        text,
        default_selector=SUCCEEDED,
        offset=_text(given.get("offset")),
        flow=None if flow is None else int(flow),
        is_trigger=given.get("is_trigger") is True,
        is_message=given.get("is_message") is True,
    )
    if EVERY in (question.point, question.name):
        raise Refused(f"{text!r} does not name one task at one point; {ID_ACCEPTED}")
    return question


def _question_then(given: Mapping[str, object]) -> StateQuestion:
    missing = [name for name in _OLD[:3] if name not in given]
    if missing:
        raise Refused(f"workflow_state needs the {missing[0]}; {ID_ACCEPTED}")
    workflow, task, point = (str(given[name]) for name in _OLD[:3])
    message, status = _text(given.get("message")), _text(given.get("status")) or SUCCEEDED
    text = f"{workflow}//{point}/{task}:{message or status}"
    offset, is_message = _text(given.get("offset")), bool(message)
    question = question_of_id(text, offset=offset, is_message=is_message)
    said = {name: str(given.get(name)) for name in _OLD} | {"status": status}
    return replace(question, given=said)


def _bound(
    names: Sequence[str], arguments: Sequence[object], keywords: Mapping[str, object]
) -> dict[str, object]:
    unknown = [name for name in keywords if name not in names]
    if unknown or len(arguments) > len(names):
        seen = unknown[0] if unknown else f"{len(arguments)} arguments"
        raise Refused(f"workflow_state takes {', '.join(names)}, not {seen}")
    return {**dict(zip(names, arguments, strict=False)), **keywords}


def _text(value: object) -> str:
    return "" if value is None else str(value)


# ---- answers ----


async def answer(
    store: Store,
    question: StateQuestion,
    definition_of: DefinitionOf,
    asker: int | None = None,
) -> StateAnswer:
    """Returns the tasks that fit a question; ``asker`` is the number of the run that asks.

    Where there is no such run, nothing is raised, since it may still come: the answer has no
    rows, and a reason.
    """
    own = None if asker is None else await store.run(asker)
    try:
        if own is None or own.name == question.workflow:
            run = await store.find_run(question.workflow)
        else:
            run = await store.find_run(question.workflow, own.sees)
    except NotFound as error:
        if own is None or not is_of_others(own.sees, question.workflow):
            return StateAnswer(reason=str(error))
        others = f"runs of {', '.join(own.sees)}" if own.sees else "no runs"
        return StateAnswer(
            reason=f"{own.name} may not look at {question.workflow!r}; apart from itself, it "
            f"may see {others}"
        )
    definition = await definition_of(run)
    point = _point_text(question, definition)
    stored = await store.read_run(run.number)
    look = _Look(question, point, definition.graph)
    tasks = [one.row for one in stored.changes if isinstance(one, PutTask)]
    memories = [one for one in stored.changes if isinstance(one, PutMemory)]
    rows = list(look.rows(tasks, memories))
    if not rows or EVERY in point or EVERY in question.name:
        rows += look.rows((), await store.forgotten(run.number))
    return StateAnswer(
        rows=tuple(sorted(rows, key=lambda row: (row.point, row.name))),
        results=_results(question, point, run.name),
        run=run.name,
    )


def remembering(definition_of: DefinitionOf, count_max: int = 16) -> DefinitionOf:
    """Returns a function that does the same, but remembers what it has read.

    When ``count_max`` definitions are remembered, it forgets all of them.
    """
    known: dict[tuple[int, str, RunOptions], RestoredDefinition] = {}

    async def remembered(run: RunView) -> RestoredDefinition:
        key = run.number, run.definition, run.options
        if key not in known:
            found = await definition_of(run)
            if len(known) >= count_max:
                known.clear()
            known[key] = found
        return known[key]

    return remembered


def _point_text(question: StateQuestion, definition: RestoredDefinition) -> str:
    """Returns the point in the format of the other workflow, with the offset added."""
    if EVERY in question.point:
        if question.offset:
            raise Refused(
                f"an offset cannot be added to {question.point!r}; write a point without *"
            )
        return question.point
    reader, style = definition.reader, definition.graph.cycling.style
    point = reader.point(question.point)
    if question.offset:
        by = reader.interval(question.offset)
        point = add(style.calendar, point, by, style.utc_offset_minutes)
    return style.text(style.rounded(point))


def _results(question: StateQuestion, point: str, run: str) -> dict[str, str]:
    if question.given:
        return dict(question.given)
    results = {"workflow": run, "task": question.name, "point": point}
    if question.offset:
        results["offset"] = question.offset
    if question.flow is not None:
        results["flow_num"] = str(question.flow)
    return results | {question.by.value: question.selector}


class _Look(NamedTuple):
    """Finds those of a run's rows that fit a question."""

    question: StateQuestion
    point: str
    graph: Graph

    def rows(
        self, tasks: Sequence[PooledTaskRow], memories: Sequence[PutMemory]
    ) -> Iterator[StateRow]:
        """Yields the rows that fit; two if a task runs in one flow and has run in another."""
        made = {one.key: one for one in memories if self._is_asked(one.key)}
        pooled: dict[Key, PooledTaskRow] = {}
        for row in tasks:
            key = (row.point, row.name)
            if self._is_asked(key):
                pooled[key] = row
                status = _STAGES.get(row.stage, row.ended)
                outputs = dict.fromkeys((*row.outputs, *_made_in(made.get(key), row.flows)))
                yield from self._fitting(key, status, tuple(outputs), row.flows)
        for key, memory in made.items():
            flows = memory.spawned - (pooled[key].flows if key in pooled else frozenset())
            status = _status_in(memory, flows)
            if status:
                yield from self._fitting(key, status, _made_in(memory, flows), flows)

    def _is_asked(self, key: Key) -> bool:
        point, name = key
        return fnmatchcase(name, self.question.name) and fnmatchcase(
            self.graph.cycling.style.text(point), self.point
        )

    def _fitting(
        self, key: Key, status: str, made: Sequence[str], flows: Flows
    ) -> Iterator[StateRow]:
        question = self.question
        if question.flow is not None and question.flow not in flows:
            return
        node = self.graph.nodes.get(key[1])
        messages = dict(node.definition.outputs) if node is not None else {}
        outputs = {name: messages.get(name, name) for name in made}
        if _fits(question, status, outputs):
            yield StateRow(
                self.graph.cycling.style.text(key[0]), key[1], status, outputs, flows
            )


def _fits(question: StateQuestion, status: str, outputs: Mapping[str, str]) -> bool:
    selector = question.selector
    if not selector or question.by is SelectedBy.STATUS:
        return selector in ("", status)
    if question.by is SelectedBy.MESSAGE:
        return selector in outputs.values()
    name = standard_name(selector)
    return name in outputs or (name == FINISHED and bool({SUCCEEDED, "failed"} & set(outputs)))


def _made_in(memory: PutMemory | None, flows: Flows) -> tuple[str, ...]:
    if memory is None:
        return ()
    return tuple(output for output, made in memory.made if made & flows or not made)


def _status_in(memory: PutMemory, flows: Flows) -> str:
    """Returns how a task ended in these flows; empty if it did not end in them."""
    finished = [
        verdict.ended or SUCCEEDED
        for flow, verdict in memory.verdicts
        if flow in flows and verdict.kind is VerdictKind.FINISHED
    ]
    if finished:
        return finished[-1]
    made = _made_in(memory, flows)
    return next((end for end in ENDS if end in made), "")


# Which tasks of a run have reached a state, as JSON: `cylc workflow-state` asks for it.


Document = dict[str, object]


def definitions_of(store: Store, home: Path, *, in_thread: bool = False) -> DefinitionOf:
    """Returns a function that reads the definition of a run from this store; ``in_thread``, if
    others wait for the thread that asks."""

    async def definition_of(run: RunView) -> RestoredDefinition:
        definition = await store.definition(run.definition)
        place = (definition, run.options, run_directory(home, run.name))
        return await asyncio.to_thread(restore, *place) if in_thread else restore(*place)

    return definition_of


async def state_document(
    store: Store, definition_of: DefinitionOf, arguments: Mapping[str, object]
) -> Document:
    """Returns as JSON the tasks that fit the question in these arguments.

    Those are `run`, `id` (POINT/NAME:SELECTOR), `offset`, `flow`, `triggers`, `messages`.
    """
    texts = {name: arguments.get(name) or "" for name in ("run", "id", "offset")}
    flow = arguments.get("flow")
    if not all(isinstance(one, str) for one in texts.values()):
        raise Refused("run, id and offset must be strings")
    if flow is not None and not isinstance(flow, int):
        raise Refused("flow must be a number")
    question = question_of_id(
        f"{texts['run']}//{texts['id']}",
        offset=str(texts["offset"]),
        flow=flow,
        is_trigger=arguments.get("triggers") is True,
        is_message=arguments.get("messages") is True,
    )
    if arguments.get("sees") is not None:  # whose rights were judged by this very name
        question = replace(question, workflow=str(texts["run"]))
    found = await answer(store, question, definition_of)
    return {
        "run": found.run,
        "reason": found.reason,
        "selector": question.selector,
        "tasks": [
            {
                "id": f"{row.point}/{row.name}",
                "point": row.point,
                "name": row.name,
                "state": row.status,
                "flows": sorted(row.flows),
                "outputs": dict(row.outputs),
            }
            for row in found.rows
        ],
    }
