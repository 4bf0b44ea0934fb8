"""SEMANTICS §9, DESIGN §9: with which options a run is carried on."""

import pytest

from tests.support.flows import flow, graph_of
from tidewheel.core.operator.definition import FLOW_CYLC, SIP, RunOptions
from tidewheel.errors import Refused
from tidewheel.scheduler.restart_options import check_final, options_from_now_on

STORED = RunOptions(
    initial="1", final="9", mode="dummy", start_tasks=("1/a",), now=5.0, stall_timeout_seconds=7
)


def merged(**given):
    options = RunOptions(**({"mode": ""} | given))
    return options_from_now_on("flow/run1", STORED, options, FLOW_CYLC)


def test_what_is_not_given_stays_as_it_was():
    assert merged(now=99.0) == STORED


def test_what_may_change_changes():
    new = merged(
        final="12",
        stop="10",
        hold_after="8",
        paused=True,
        abort_if_any_task_fails=True,
        stall_timeout_seconds=0.0,
    )
    assert (new.final, new.stop, new.hold_after, new.now) == ("12", "10", "8", 5.0)
    assert new.paused and new.abort_if_any_task_fails
    assert new.stall_timeout_seconds == 0.0


def test_the_same_again_is_no_change():
    assert merged(initial="1", mode="dummy", start_tasks=("1/a",)) == STORED


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mode": "live"}, "was started with --mode dummy, which cannot be changed to live"),
        ({"initial": "2"}, "with --icp 1, which cannot be changed to 2"),
        ({"start": "2"}, "with no --startcp, which cannot be changed to 2"),
        (
            {"start_tasks": ("1/b", "1/c")},
            "--start-task 1/a, which cannot be changed to 1/b 1/c",
        ),
        ({"compat": "cylc8"}, "with no --compat, which cannot be changed to cylc8"),
        ({"priority": 7}, "with no --priority, which cannot be changed to 7"),
    ],
)
def test_what_a_run_is_stays_and_the_refusal_says_what_to_do(given, said):
    with pytest.raises(Refused, match=said) as refused:
        merged(**given)
    assert "--new" in str(refused.value)


def test_a_final_point_may_only_become_later():
    ends_at = {final: graph_of(flow("P1 = a", final=final)) for final in ("3", "4", "")}
    check_final("r", ends_at["3"], ends_at["4"])
    check_final("r", ends_at["3"], ends_at[""])
    for old, new, said in (("4", "3", "ends at 4"), ("", "4", "has no final point")):
        with pytest.raises(Refused, match=f"{said}.*--stopcp {new}"):
            check_final("r", ends_at[old], ends_at[new])


@pytest.mark.parametrize(
    "option", ["compat", "initial", "final", "start", "stop", "hold_after"]
)
def test_what_would_have_no_effect_on_stages_is_refused(option):
    with pytest.raises(Refused, match=rf"\({option}\) is for a flow.cylc or"):
        options_from_now_on("flow/run1", RunOptions(), RunOptions(**{option: "1"}), SIP)
