"""Who follows a run from afar is told what somebody at its own terminal is told."""

import pytest

from tidewheel.cli.run_log_lines import told_lines

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


def test_what_is_no_line_of_ours_is_shown_as_it_is():
    assert list(told_lines("Traceback of something")) == ["Traceback of something"]
