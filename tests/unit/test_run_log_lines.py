"""Who follows a run from afar is told what somebody at its own terminal is told."""

import pytest

from tidewheel.cli.runs.remote import LogTelling


def told_lines(text):
    return LogTelling().lines(text)


AT = "2030-01-01T12:00:01Z"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("INFO - [1/foo/01:submitted] => running", "12:00:01 1/foo started"),
        ("INFO - [20300101T00Z/foo/02(flows=2):running] => succeeded", None),
        ("INFO - [1/foo/01:running] => failed(held)", "12:00:01 1/foo failed"),
        ("WARNING - no file there", "12:00:01 warning: no file there"),
    ],
)
def test_begins_ends_and_trouble_are_told(line, told):
    expected = told or "12:00:01 20300101T00Z/foo succeeded"
    assert list(told_lines(f"{AT} {line}")) == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "INFO - spawned 1/a",
        "DEBUG - [1/a:waiting] => waiting(queued)",
        "INFO - [1/a:waiting] => preparing",
        "INFO - [1/a/01:preparing] => submitted",
        "INFO - 1/b -triggered off ['1/a'] in flow 1",
    ],
)
def test_the_steps_between_are_left_to_the_log(line):
    assert list(told_lines(f"{AT} {line}")) == []


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["ERROR - [1/a/01] exit status 3", "ERROR - [1/a/01:running] failed/ERR"], []),
        (
            ["ERROR - [1/a/01] exit status 3", "INFO - [1/a/01:running] => failed"],
            ["1/a failed: exit status 3"],
        ),
        (
            [
                "ERROR - [1/a/01] ended by SIGTERM",
                "INFO - [1/a/01:running] => failed",
                "DEBUG - [1/a/01:failed] removed from the n=0 window: completed",
                "WARNING - [1/a] job killed",
            ],
            ["1/a killed: ended by SIGTERM"],
        ),
        (["INFO - [1/a/01:running] => running(held)"], []),
        (["WARNING - 1/a failed, which nothing handles"], []),
        (["WARNING - 1/a failed: retry 1 of 2"], ["1/a failed: retry 1 of 2"]),
        (
            ["ERROR - [1/a/01] its node failed", "WARNING - 1/a failed: retry 1 of 2"],
            ["1/a failed: retry 1 of 2: its node failed"],
        ),
        (["WARNING - [1/a:waiting] - retrying in PT1S (after 2030-01-01T00:00:00Z)"], []),
    ],
)
def test_the_words_are_those_of_a_run_that_is_driven_here(lines, told):
    text = "\n".join(f"{AT} {line}" for line in lines)
    assert list(told_lines(text)) == [f"12:00:01 {one}" for one in told]


def test_a_stall_is_noticed_and_what_it_waits():
    telling = LogTelling()
    lines = [
        *("CRITICAL - Workflow stalled", "WARNING - stalled: 1/a failed, incomplete"),
        *("WARNING - PT1H stall timer starts NOW", "CRITICAL - stalled for too long"),
    ]
    assert list(telling.lines("\n".join(f"{AT} {line}" for line in lines))) == []
    assert telling.has_stalled and telling.stall_waits == "1h"


def test_a_stall_timer_that_stops_nothing_is_no_time_to_wait():
    telling = LogTelling()
    line = "WARNING - PT1H stall timer starts NOW; it does not stop the run"
    assert list(telling.lines(f"{AT} {line}")) == []
    assert telling.stall_waits == ""


def test_what_is_no_line_of_ours_is_shown_as_it_is():
    assert list(told_lines("Traceback of something")) == ["Traceback of something"]
