"""Asking how far the tasks of another run are, as xtriggers and people do."""

import asyncio
from pathlib import Path

import pytest

from tests.kit.memory import MemoryStore
from tidewheel.core.cycling.calendar import BadCycling
from tidewheel.core.operator.definition import NewRun, RunOptions, StoredDefinition
from tidewheel.core.operator.requests import RunBatch, RunClaim
from tidewheel.core.queue.requests import HostProcess
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.persistence import (
    ForgetMemory,
    PooledTaskRow,
    PutMemory,
    PutRun,
    PutTask,
)
from tidewheel.core.sched.pool import RunState
from tidewheel.core.sched.task_state import AtomValue, JobPhase, Verdict, VerdictKind
from tidewheel.errors import Refused
from tidewheel.services.definitions.snapshot import restore
from tidewheel.services.workflow_state import (
    SelectedBy,
    StateQuestion,
    answer,
    question_of_call,
    question_of_id,
    remembering,
)

TEXT = """
[scheduling]
    initial cycle point = 20000101T00Z
    [[graph]]
        P1D = a & b & c
[runtime]
    [[a, b, c]]
        [[[outputs]]]
            file1 = the file is there
"""
ONE, TWO = frozenset({1}), frozenset({2})
DAY = 86400
FIRST = 946684800  # 20000101T0000Z


def memory(name, *outputs, point=FIRST, flows=ONE, ended="succeeded"):
    verdict = Verdict(VerdictKind.FINISHED, AtomValue.NOT_TAKEN, ended)
    made = tuple((output, flows) for output in outputs)
    verdicts = tuple((flow, verdict) for flow in flows) if ended else ()
    return PutMemory((point, name), flows, made, verdicts, 1)


def pooled(name, stage, point=FIRST, flows=ONE, ended=""):
    return PutTask(
        PooledTaskRow(
            point=point,
            name=name,
            flows=flows,
            stage=stage,
            outputs=("submitted", "started"),
            released=True,
            ended=ended,
            submit=1,
            order=1,
        )
    )


ROWS = (
    PutRun(RunState(FIRST)),
    memory("a", "submitted", "started", "succeeded", "file1"),
    memory("b", "submitted", "started", "failed", ended="failed"),
    pooled("c", JobPhase.RUNNING),
    memory("c", ended=""),
    pooled("a", JobPhase.WAITING, flows=TWO),
    ForgetMemory(memory("a", "succeeded", point=FIRST - DAY)),
)


async def asked(question, rows=ROWS):
    store = MemoryStore(lambda: 5.0)
    stored = StoredDefinition(digest="d", workflow="other", text=TEXT)
    await store.save_definition(stored)
    run = await store.create_run(NewRun(workflow="other", definition="d", options=RunOptions()))
    process = HostProcess(host="h", boot_id="b", pid=1, started=0.0)
    lease = await store.claim_run(RunClaim(run=run.number, process=process))
    batch = RunBatch(number=lease.batch + 1, at=Instant(5.0), status="running", changes=rows)
    await store.write_batch(lease, batch)

    async def definition_of(view):
        return restore(await store.definition(view.definition), view.options, Path("/nowhere"))

    return await answer(store, question, definition_of)


def told(question, rows=ROWS):
    found = asyncio.run(asked(question, rows))
    return [(row.point, row.name, row.status) for row in found.rows]


# Questions.


def test_an_id_names_workflow_point_task_and_selector():
    assert question_of_id("a/b/run1//1/foo:file1") == StateQuestion(
        workflow="a/b/run1", point="1", name="foo", selector="file1", by=SelectedBy.TRIGGER
    )
    assert question_of_id("w") == StateQuestion(workflow="w")
    assert question_of_id("~ada/w//2").point == "2"
    assert question_of_id("w//1/foo:succeeded").by is SelectedBy.STATUS
    assert question_of_id("w//1/foo:'the file'", is_message=True).selector == "the file"


def test_a_status_that_passes_is_asked_for_by_the_output_that_stays():
    question = question_of_id("w//1/foo:running")
    assert (question.selector, question.by) == ("started", SelectedBy.TRIGGER)


def test_an_xtrigger_asks_whether_a_task_succeeded_unless_it_says_otherwise():
    assert question_of_call(("w//1/foo",), {"offset": "P1", "flow_num": 2}) == StateQuestion(
        workflow="w", point="1", name="foo", selector="succeeded", offset="P1", flow=2
    )
    question = question_of_call((), {"workflow_task_id": "w//1/foo:x", "is_trigger": True})
    assert (question.selector, question.by) == ("x", SelectedBy.TRIGGER)


def test_the_call_of_before_cylc_8_3_is_understood():
    question = question_of_call((), {"workflow": "w", "task": "foo", "point": "1"})
    assert (question.workflow, question.point, question.name) == ("w", "1", "foo")
    assert (question.selector, question.by) == ("succeeded", SelectedBy.STATUS)
    question = question_of_call(("w", "foo", "1"), {"message": "the file is there"})
    assert (question.selector, question.by) == ("the file is there", SelectedBy.MESSAGE)
    assert question.given["task"] == "foo"
    assert question_of_call((), {"suite": "w", "task": "t", "point": "1"}).workflow == "w"


@pytest.mark.parametrize(
    ("arguments", "keywords"),
    [
        ((), {}),
        (("w//1",), {}),
        (("w//*/foo",), {}),
        (("//1/foo",), {}),
        (("w//1/foo",), {"nonsense": 1}),
        (("w",), {"task": "foo"}),
    ],
)
def test_a_call_that_names_no_task_is_refused(arguments, keywords):
    with pytest.raises(Refused):
        question_of_call(arguments, keywords)


# Answers.


def test_a_task_is_found_by_its_status():
    assert told(question_of_id("other//20000101T00Z/a:succeeded")) == [
        ("20000101T0000Z", "a", "succeeded")
    ]
    assert told(question_of_id("other//20000101T00Z/b:succeeded")) == []
    assert told(question_of_id("other//20000101T00Z/b:failed")) != []
    assert told(question_of_id("other//20000101T00Z/c")) == [("20000101T0000Z", "c", "running")]


def test_a_task_is_found_by_an_output_or_its_message():
    assert told(question_of_id("other//20000101T00Z/a:file1")) != []
    message = question_of_id("other//20000101T00Z/a:the file is there", is_message=True)
    assert told(message) != []
    assert told(question_of_id("other//20000101T00Z/b:file1")) == []
    assert told(question_of_id("other//20000101T00Z/b:finished")) != []
    assert told(question_of_id("other//20000101T00Z/c:started")) != []


def test_each_flow_has_a_state_of_its_own():
    assert told(question_of_id("other//20000101T00Z/a")) == [
        ("20000101T0000Z", "a", "waiting"),
        ("20000101T0000Z", "a", "succeeded"),
    ]
    assert told(question_of_id("other//20000101T00Z/a:succeeded", flow=2)) == []


def test_points_are_read_in_any_notation_and_may_be_moved():
    question = question_of_call(("other//2000-01-02/a",), {"offset": "-P1D"})
    found = asyncio.run(asked(question))
    assert found.satisfied
    assert found.results == {
        "workflow": "other/run1",
        "task": "a",
        "point": "20000101T0000Z",
        "offset": "-P1D",
        "status": "succeeded",
    }


def test_what_the_run_has_forgotten_is_found_in_its_history():
    assert told(question_of_id("other//19991231T00Z/a:succeeded")) != []


def test_stars_stand_for_any_point_and_task():
    assert len(told(question_of_id("other"))) == 5
    assert [name for _, name, _ in told(question_of_id("other//*/*:failed"))] == ["b"]
    with pytest.raises(Refused, match="offset"):
        told(question_of_id("other//*/a", offset="P1D"))


def test_a_run_that_is_not_there_yet_may_still_come():
    found = asyncio.run(asked(question_of_id("missing//1/a")))
    assert not found.satisfied
    assert "missing" in found.reason


def test_a_definition_is_read_once_for_many_questions():
    read = []

    async def definition_of(run):
        read.append(run)
        return object()

    async def ask_thrice():
        store = MemoryStore(lambda: 5.0)
        await store.save_definition(StoredDefinition(digest="d", workflow="w", text=TEXT))
        runs = [await store.create_run(NewRun(workflow="w", definition="d")) for _ in "ab"]
        remembered = remembering(definition_of, count_max=1)
        found = [await remembered(run) for run in (runs[0], runs[0], runs[1], runs[0])]
        return [one is found[0] for one in found]

    assert asyncio.run(ask_thrice()) == [True, True, False, False]
    assert len(read) == 3


def test_a_point_that_is_none_is_refused():
    with pytest.raises(BadCycling):
        told(question_of_id("other//nonsense/a"))
