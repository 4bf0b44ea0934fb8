"""What a processing block still waits for, by the status of the other block's run."""

from dataclasses import replace

import pytest

from tests.unit.test_run_values import view
from tidewheel.core.operator.blocks import BlockCondition, BlockView, NeedState, NeedView

# Each line: which condition, and what it is for each status of the other block.
STATES = """
condition created running stalled stopped completed error
complete  open    open    never   never   met       never
started   open    met     met     met     met       met
failed    open    open    met     never   never     met
aborted   open    open    met     met     never     met
finished  open    open    met     met     met       met
"""
HEAD, *LINES = (line.split() for line in STATES.strip().splitlines())


def need(condition, status, *, going=False, reason=""):
    return NeedView(
        run=2,
        parent="PB-1",
        condition=BlockCondition(condition),
        status=status,
        begun=status != "created",
        going=going,
        reason=reason,
    )


@pytest.mark.parametrize(
    ("condition", "status", "state"),
    [(line[0], *pair) for line in LINES for pair in zip(HEAD[1:], line[1:], strict=True)],
)
def test_a_need_is_met_open_or_never_met(condition, status, state):
    assert need(condition, status).state == state


def test_what_is_carried_on_may_still_come_to_what_is_needed():
    assert need("complete", "stopped", going=True).state is NeedState.OPEN


def test_a_need_says_what_it_waits_for_and_what_it_sees():
    assert str(need("complete", "created")) == "PB-1 to be complete (it has not begun)"
    assert str(need("failed", "stopped")) == "PB-1 to be failed (it is stopped)"
    assert str(need("complete", "stalled")) == "PB-1 to be complete (it has failed)"
    aborted = need("complete", "stopped", reason="aborted by ada")
    assert str(aborted) == "PB-1 to be complete (it is aborted)"


def test_a_block_waits_for_what_is_not_met_until_it_has_begun():
    met, unmet = need("started", "running"), need("complete", "running")

    def block(batch):
        run = replace(view("PB-2"), batch=batch)
        return BlockView(
            id="PB-2", sbi="S", position=2, body="{}", run=run, priority=0, needs=(met, unmet)
        )

    assert block(0).waits == (unmet,)
    assert block(1).waits == ()
