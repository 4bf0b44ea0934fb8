"""Rows of the outbox, also those that another version of the program wrote."""

import json

from tests.kit.scenario import compile_graph
from tidewheel.core.operator.selection import read_point
from tidewheel.core.queue.task import Instant
from tidewheel.scheduler.event_handlers import NO_POINT, body_of, notice_of
from tidewheel.scheduler.handler_templates import HandledNotice, TaskFacts
from tidewheel.scheduler.submissions import EffectiveSettings

GRAPH = compile_graph("a", final=3)
NODES = EffectiveSettings(GRAPH, "live", ())
SECOND = read_point(GRAPH.cycling, "2")
OF_A_TASK = HandledNotice(
    event="failed",
    message="it's over",
    task=TaskFacts(
        node=NODES.node((SECOND, "a")),
        point="2",
        submit=3,
        try_number=2,
        submitted_at=Instant(1.5),
        ended_at=Instant(2.5),
    ),
)
OF_THE_RUN = HandledNotice(event="stall", message="nothing moves")


def test_an_event_is_read_as_it_was_written():
    for notice, point in ((OF_A_TASK, SECOND), (OF_THE_RUN, NO_POINT)):
        assert notice_of(body_of(notice, point), GRAPH, NODES) == notice


def test_fields_of_a_later_version_are_passed_over_and_those_it_left_out_have_defaults():
    later = json.loads(body_of(OF_A_TASK, SECOND)) | {"colour": "blue", "more": [1]}
    assert notice_of(json.dumps(later), GRAPH, NODES) == OF_A_TASK
    assert notice_of('{"event": "stall"}', GRAPH, NODES) == HandledNotice(event="stall")


def test_an_event_of_a_task_that_a_reload_removed_is_one_that_nobody_handles():
    gone = json.loads(body_of(OF_A_TASK, SECOND)) | {"name": "gone"}
    found = notice_of(json.dumps(gone), GRAPH, NODES)
    assert found.task is not None and found.task.id == "2/gone"
