"""Failures that are alike are one line with one command, wherever a run is looked at."""

import pytest

WIDE = """
[task parameters]
    m = 1..5
[scheduler]
    [[events]]
        stall timeout = PT0S
[scheduling]
    [[graph]]
        R1 = member<m> => join
[runtime]
    [[member<m>]]
        script = echo "CFL violated at step $CYLC_TASK_PARAM_m" >&2; exit 3
    [[join]]
        script = true
"""
ALIKE = "5 failed alike (member_m*): exit 3, CFL violated at step …; 1 task waits for them"
TRIGGER = "tidewheel trigger wide/run1 '1/member_m*:failed'"
LOG = "tidewheel log wide/run1 1/member_m1 --err"


@pytest.fixture
def stalled(tidewheel):
    folder = tidewheel.folder / "wide"
    folder.mkdir()
    (folder / "flow.cylc").write_text(WIDE)
    return tidewheel("run", "wide")


def test_one_cause_of_many_failures_is_one_line_in_run_show_and_why(tidewheel, stalled):
    for said in (stalled.out, stalled.err, tidewheel("show").out):
        assert said.count(ALIKE) == 1 and TRIGGER in said and LOG in said, said
        assert "1/member_m2 failed and" not in said
    why = tidewheel("why", "1/join").out
    assert f"1/join needs {ALIKE}" in why and TRIGGER in why
    assert why.count("member_m3") == 0
    page = tidewheel("show", "--json").json
    [group] = page["groups"]
    assert (group["text"], group["count"], group["name"]) == (ALIKE, 5, "member_m*")
    assert group["ids"] == [one["id"] for one in page["causes"]]
    assert (group["log"], group["end"]) == ("1/member_m1", "exit 3")
    assert group["error"] == "CFL violated at step 1"
