"""Shows everything about one task of a run: what it waits for, what it made, how it ran."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from tidewheel.api import run_details as api
from tidewheel.api.runs import RunDocument
from tidewheel.api.tasks import AttemptView, OutputView
from tidewheel.core.graph import outputs
from tidewheel.core.operator.definition import read_job_name
from tidewheel.core.operator.selection import XTRIGGER
from tidewheel.core.operator.task_inputs import values_for
from tidewheel.core.operator.verbs import Set, Trigger
from tidewheel.core.operator.views import CommandView, SubmissionView
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.reachability import chain_text
from tidewheel.core.sched.spawn import CLOCK, EXPIRY, RETRY
from tidewheel.core.sched.task_state import Flows, Key, VerdictKind
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.scheduler.broadcasts import settings_for, with_settings
from tidewheel.services.clock_triggers import ClockTriggers
from tidewheel.services.paths import submission_directory
from tidewheel.views.graph import prerequisites, suicides
from tidewheel.views.log import found_files
from tidewheel.views.run import run_document
from tidewheel.views.run_facts import described, job_facts, kept_commands
from tidewheel.views.snapshot import (
    AskedView,
    RunSnapshot,
    ShownTask,
    due_times,
    submissions_by_task,
)
from tidewheel.views.status_text import verdict_word
from tidewheel.views.task_lookup import (
    COMMANDS_MAX,
    children,
    few_tasks,
    obeyed_commands,
    outputs_set,
)
from tidewheel.views.why import nested_run_of, reasons_of_task
from tidewheel.vocabulary import time_text

SUBMISSIONS_SHOWN_MAX = 100
CHILDREN_MAX = 50
VARIABLES_MAX = 200
TIMERS = {CLOCK: "clock-trigger", RETRY: "retry delay", EXPIRY: "expiry"}


async def show(asked: AskedView) -> RunDocument | api.TaskDocuments:
    """Shows a run; if ids are given, the tasks that they name, in full."""
    store, snapshot, ids = asked.store, await asked.snapshot(), asked.texts("ids")
    if not ids:
        document = await run_document(asked, snapshot, await asked.submissions())
        document["run"]["kept"] = await kept_commands(store, snapshot.view, snapshot.now)
        return document
    found = few_tasks(snapshot, ids)
    return {
        "stages": snapshot.is_of_stages,
        "tasks": [await _document(asked, snapshot, key) for key in found],
    }


class TaskSubmission(NamedTuple):
    """Holds a submission with its attempts and the messages of its jobs."""

    number: int
    view: SubmissionView
    attempts: Sequence[AttemptView]
    said: Sequence[OutputView]
    values: str | None  # JSON, for those after it

    def made_at(self, output: str) -> Instant | None:
        """Returns when the submission made an output; None if it did not."""
        view = self.view
        if output in (outputs.SUBMITTED, outputs.STARTED):
            return view.started_at
        if output == view.status and view.ended_at is not None:
            return view.ended_at
        return next((said.at for said in self.said if said.output == output), None)

    def document(self, home: Path) -> api.SubmissionOfTask:
        job = read_job_name(self.view.task_id)
        attempts = [
            described(
                api.AttemptOfTask,
                one,
                error=one.error.description if one.error else None,
                logs=found_files(submission_directory(home, job, one.attempt)),
            )
            for one in self.attempts
        ]
        return described(
            api.SubmissionOfTask,
            self.view,
            **job_facts(self.view),
            folder=str(submission_directory(home, job)),
            attempts=attempts,
            messages=[described(api.JobMessage, said) for said in self.said],
            values=None if self.values is None else json.loads(self.values),
        )


async def _document(asked: AskedView, snapshot: RunSnapshot, key: Key) -> api.TaskDocument:
    """Returns everything about a task."""
    store, one = asked.store, snapshot.shown(key)
    by_task = await submissions_by_task(store, snapshot.view, point=one.point, name=one.name)
    shown = by_task.get((one.point, one.name), ())[-SUBMISSIONS_SHOWN_MAX:]
    values = await store.values_of([view.task_id for view in shown])
    submissions = [
        TaskSubmission(
            read_job_name(view.task_id).submit,
            view,
            await store.attempts(view.task_id),
            await store.outputs(view.task_id),
            values.get(view.task_id),
        )
        for view in shown
    ]
    stored = await store.run_values(snapshot.view.number, [key])
    counting = values_for(stored, frozenset(one.flows))
    commands = await store.commands(snapshot.view.number, COMMANDS_MAX)
    task = _Task(snapshot, one, submissions, commands)
    return described(
        api.TaskDocument,
        None,
        **task.facts(),
        values=None if counting is None else json.loads(counting.body),
        prerequisites=prerequisites(snapshot, key),
        suicide=suicides(snapshot, key),
        xtriggers=list(task.xtriggers()),
        outputs=list(task.outputs()),
        verdicts=list(task.verdicts()),
        environment=task.environment(),
        submissions=[each.document(asked.context.home) for each in submissions],
        nested=await _nested(asked, snapshot, one),
        why=(await reasons_of_task(asked, snapshot, key))["reasons"],
    )


async def _nested(
    asked: AskedView, snapshot: RunSnapshot, one: ShownTask
) -> list[api.NestedRun]:
    """Returns the runs that the last submissions of a task are, if it is of that kind."""
    found: list[api.NestedRun] = []
    if not snapshot.pool.plan.nodes[one.name].definition.workflow:
        return found
    first = max(1, one.submit - SUBMISSIONS_SHOWN_MAX + 1)
    for submit in range(first, one.submit + 1):
        run = await nested_run_of(asked.store, snapshot, one, submit)
        if run is not None:
            found.append(described(api.NestedRun, run, submit=submit, run=run.name))
    return found


class _Task:
    """Shows one task of a run, with its submissions and the commands of the run."""

    def __init__(
        self,
        snapshot: RunSnapshot,
        one: ShownTask,
        submissions: Sequence[TaskSubmission],
        commands: Sequence[CommandView],
    ) -> None:
        self._snapshot, self._one, self._submissions = snapshot, one, submissions
        self._node = snapshot.pool.plan.nodes[one.name]
        self._obeyed = list(obeyed_commands(snapshot, one, commands))

    def facts(self) -> api.TaskFacts:
        one, definition, snapshot = self._one, self._node.definition, self._snapshot
        meta = dict(definition.meta)
        behind = sorted(set(children(snapshot.pool, one.key)))
        return described(
            api.TaskFacts,
            one,
            run=snapshot.view.name,
            title=meta.get("title", ""),
            description=meta.get("description", ""),
            families=[name for name in definition.lineage if name != one.name],
            submits=max(one.submits, one.submit),
            completion=str(self._node.completion),
            children=[snapshot.id_of(key) for key in behind[:CHILDREN_MAX]],
            **{"try": 1 if one.task is None else one.task.try_number},
        )

    def verdicts(self) -> Iterator[api.VerdictFacts]:
        memory = self._one.memory
        for flow, verdict in sorted(memory.verdicts.items()) if memory is not None else ():
            text = chain_text(self._snapshot.pool, self._one.key, flow)
            if verdict.kind is VerdictKind.FINISHED:
                text = f"{self._one.shown} {verdict_word(verdict)}"
            yield {"flow": flow, "verdict": str(verdict.kind), "text": text}

    def environment(self) -> list[api.JobVariable]:
        """Returns the variables that jobs get from the definition, as set now, in their order.

        `broadcast`: it was set during the run.
        """
        definition, broadcasts = self._node.definition, self._snapshot.stored.broadcasts
        settings = settings_for(broadcasts, self._one.point, definition.lineage)
        by_hand = {item for item, _ in settings}
        shown = with_settings(definition, settings).environment[:VARIABLES_MAX]
        return [
            {"name": name, "value": value, "broadcast": f"[environment]{name}" in by_hand}
            for name, value in shown
        ]

    # ---- outputs ----

    def outputs(self) -> Iterator[api.OutputFacts]:
        """Yields each output, with whether it was made, in which flows and by whom."""
        task, memory = self._one.task, self._one.memory
        by_hand = self._set_by_hand()
        messages = dict(self._node.definition.outputs)
        made = self._made(by_hand)
        for output in (*outputs.STANDARD, *messages):
            flows = None if memory is None else memory.made.get(output)
            maker, at = self._maker(output)
            hand = by_hand.get(output)
            is_by_hand = output in made and (
                (task is not None and output in task.by_hand)
                or (hand is not None and not maker)
            )
            if is_by_hand:
                maker = "by hand" if hand is None else f"by hand ({hand.who})"
                at = at if hand is None else hand.at
            yield {
                "output": output,
                "message": messages.get(output, output),
                "made": output in made,
                "by_hand": is_by_hand,
                "by": maker if output in made else "",
                "at": time_text(at) if output in made else None,
                "flows": sorted(flows or made.get(output, frozenset())),
                "required": output in self._node.completion.required,
            }

    def _made(self, by_hand: dict[str, CommandView]) -> dict[str, Flows]:
        """Returns every output that was made by any submission or by hand, with its flows."""
        task, memory = self._one.task, self._one.memory
        found: dict[str, Flows] = {} if memory is None else dict(memory.made)
        if task is not None:
            found = {output: task.flows for output in task.outputs} | found
        for flow, verdict in memory.verdicts.items() if memory is not None else ():
            if verdict.kind is VerdictKind.FINISHED and verdict.ended:
                found.setdefault(verdict.ended, frozenset({flow}))
        ran_alone = task is None and memory is not None and not memory.verdicts
        for output in (*outputs.STANDARD, *dict(self._node.definition.outputs)):
            # How a job ended is an output only if no retry was left (SEMANTICS §4.7).
            if self._maker(output)[0] and (ran_alone or output not in outputs.ENDS):
                found.setdefault(output, frozenset() if memory is None else memory.spawned)
        if task is None and memory is not None:
            # An output that nobody waits for is known from the commands alone.
            there = (one for one in by_hand if one not in memory.held_back)
            found = {one: memory.spawned for one in there} | found
        return found

    def _maker(self, output: str) -> tuple[str, Instant | None]:
        """Returns the last submission that made an output, in words, and when it did; "" and
        None if none did."""
        for one in reversed(self._submissions):
            if (at := one.made_at(output)) is not None:
                return f"submission {one.number:02d}", at
        return "", None

    def _set_by_hand(self) -> dict[str, CommandView]:
        """Returns the outputs that commands have set, each with the first that did.

        The pool knows outputs set by hand as long as the task is in it. Afterwards the commands
        say it: their answers name the tasks, and the commands themselves the outputs (R001-52).
        """
        found: dict[str, CommandView] = {}
        for view, command in self._obeyed:
            for output in outputs_set(self._node, command):
                found |= dict.fromkeys((*outputs.IMPLIED.get(output, ()), output), view)
        return found

    # ---- what it waits for besides other tasks ----

    def xtriggers(self) -> Iterator[api.XtriggerFacts]:
        """Yields each xtrigger and timer, with whether the task still waits for it."""
        snapshot, task, key = self._snapshot, self._one.task, self._one.key
        waits = {} if task is None else task.waits
        set_for = [one for one in snapshot.stored.timers if (one.point, one.name) == key]
        times = {one.timer: one.at for one in set_for}
        due_at, submitted = due_times(snapshot), bool(self._submissions)
        labels = (label for sequence, label in self._node.xtriggers if sequence.has(key[0]))
        own = dict.fromkeys(labels)
        for label in own:
            call = snapshot.graph.xtriggers.get(label)
            # A task that left the pool without a submission has not waited to the end.
            gone = label not in waits if task is not None else submitted
            yield {
                "label": label,
                "call": "" if call is None else call.function,
                "satisfied": gone,
                "by_hand": gone and self._did_without(label),
                "at": time_text(None if gone else due_at(key, label)),
            }
        # Then timers that are set, and messages from outside.
        others = [one for one in TIMERS if one in waits or (one == EXPIRY and one in times)]
        others += [label for label in waits if label not in TIMERS and label not in own]
        for label in others:
            yield {
                "label": label,
                "call": TIMERS.get(label, "external trigger"),
                "satisfied": False,
                "by_hand": False,
                "at": time_text(times.get(label)),
            }

    def _did_without(self, label: str) -> bool:
        """Says whether somebody released the task by hand before the xtrigger was satisfied. A
        command after the first submission does not count."""
        let_go_at = None
        for view, command in self._obeyed:
            satisfied = command.prerequisites if isinstance(command, Set) else ()
            if isinstance(command, Trigger) or {"all", XTRIGGER + label} & set(satisfied):
                let_go_at = view.at
        first = self._submissions[0].view.submitted_at if self._submissions else None
        if let_go_at is None or (first is not None and first < let_go_at):
            return False
        graph = self._snapshot.graph
        clocks = ClockTriggers(graph.xtriggers, graph.cycling)
        due = clocks.due_at(label, self._one.key[0])
        return due is None or due > let_go_at
