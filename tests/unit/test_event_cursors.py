"""Where a reader of events stands, and which of them it wants."""

import pytest

from tidewheel.core.operator.stream import (
    EventCursor,
    EventFilter,
    EventKind,
    EventPlace,
    RunEvent,
    read_cursor,
)
from tidewheel.errors import BadSetting


@pytest.mark.parametrize(
    ("text", "cursor"),
    [
        ("1f00ba44-12-7", EventCursor("1f00ba44", EventPlace(12, 7))),
        ("a-0-0", EventCursor("a", EventPlace(0, 0))),
        (f"a-{2**63 - 1}-1", EventCursor("a", EventPlace(2**63 - 1, 1))),
    ],
)
def test_a_cursor_is_a_text_that_is_read_back(text, cursor):
    assert str(cursor) == text
    assert read_cursor(text) == cursor


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12",
        "a-1",
        "a-1-2-3",
        "A-1-2",
        "a-1-x",
        "a--1-2",
        "a-1-²",
        f"a-{2**63}-1",
        "a-1-2\n",
    ],
)
def test_what_no_stream_gave_is_no_cursor(text):
    with pytest.raises(BadSetting, match="expected the id of an event, as the stream gave"):
        read_cursor(text)


def test_a_text_that_is_no_cursor_is_not_repeated_at_any_length():
    with pytest.raises(BadSetting) as refused:
        read_cursor("x" * 100_000)
    assert refused.value.value == "x" * 100


@pytest.mark.parametrize(
    ("which", "wanted"),
    [
        (EventFilter(), True),
        (EventFilter(kind=EventKind.RUN), True),
        (EventFilter(kind=EventKind.TASK), False),
        (EventFilter(queue="night"), True),
        (EventFilter(queue="day"), False),
        (EventFilter(run="flow/run1", queue="night", kind=EventKind.RUN), True),
        (EventFilter(run="flow/run2", queue="night", kind=EventKind.RUN), False),
    ],
)
def test_an_event_is_wanted_if_everything_that_was_asked_for_matches(which, wanted):
    event = RunEvent(
        place=EventPlace(1, 0),
        at=0.0,
        number=1,
        run="flow/run1",
        workflow="flow",
        queue="night",
        status="running",
        reason="",
        batch=1,
    )
    assert which.wants(event) is wanted
