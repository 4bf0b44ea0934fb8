"""Every status of a task under every signal, against a copy of the table made by hand."""

from itertools import product

import pytest

from tidewheel.core.queue.status import (
    FINAL,
    INITIAL,
    LEASED,
    Signal,
    Status,
    allowed_for,
    legal_steps,
    next_status,
)
from tidewheel.errors import WrongStatus

# The table of the design, copied by hand: a row of the program that is changed by mistake
# must differ from something.
TABLE = """
    waiting    satisfy    ready
    waiting    skip       succeeded
    waiting    cancel     cancelled
    ready      skip       succeeded
    ready      claim      running
    ready      cancel     cancelled
    running    succeed    succeeded
    running    retry      ready
    running    fail       failed
    running    abort      failed
    running    yield      ready
    running    adopt      running
    running    lapse      ready
    running    lapse_out  failed
    running    time_out   failed
    running    cancel     cancelling
    cancelling succeed    cancelled
    cancelling retry      cancelled
    cancelling fail       cancelled
    cancelling abort      cancelled
    cancelling yield      cancelled
    cancelling adopt      cancelling
    cancelling lapse      cancelled
    cancelling lapse_out  cancelled
    cancelling time_out   cancelled
"""
STEPS = [tuple(line.split()) for line in TABLE.strip().splitlines()]
EXPECTED = {(status, signal): to for status, signal, to in STEPS}
STATUSES = ("waiting", "ready", "running", "cancelling", "succeeded", "failed", "cancelled")
SIGNALS = (
    *("satisfy", "skip", "claim", "succeed", "retry", "fail", "abort", "yield", "adopt"),
    *("lapse", "lapse_out", "time_out", "cancel"),
)


def test_the_words_are_those_of_the_design():
    assert tuple(status.value for status in Status) == STATUSES
    assert tuple(signal.value for signal in Signal) == SIGNALS


@pytest.mark.req("R002-79", "R003-66")
@pytest.mark.parametrize(("status", "signal"), list(product(STATUSES, SIGNALS)))
def test_each_signal_in_each_status_leads_where_the_design_says_or_is_refused(status, signal):
    expected = EXPECTED.get((status, signal))
    if expected is not None:
        assert next_status("a", Status(status), Signal(signal)) == expected
        return
    with pytest.raises(WrongStatus) as refused:
        next_status("a", Status(status), Signal(signal))
    allowed = tuple(s for s in STATUSES if (s, signal) in EXPECTED)
    assert (refused.value.status, refused.value.allowed) == (status, allowed)
    assert str(refused.value) == (
        f"task 'a': {signal} needs status {' or '.join(allowed)}; the status is {status}"
    )


@pytest.mark.req("R002-66")
@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled"])
def test_nothing_leads_out_of_a_final_status(status):
    assert status in FINAL
    for signal in Signal:
        with pytest.raises(WrongStatus):
            next_status("a", Status(status), signal)


def test_the_groups_of_statuses():
    assert {"succeeded", "failed", "cancelled"} == FINAL
    assert {"running", "cancelling"} == LEASED
    assert {"waiting", "ready"} == INITIAL


def test_the_legal_steps_are_the_rows_of_the_table():
    assert legal_steps() == set(STEPS)


def test_what_a_signal_needs_is_listed_in_the_order_of_life():
    assert allowed_for(Signal.CANCEL) == ("waiting", "ready", "running")
    assert allowed_for(Signal.CLAIM) == ("ready",)
    assert allowed_for(Signal.ADOPT) == ("running", "cancelling")


@pytest.mark.req("R003-67")
def test_no_signal_leads_back_to_waiting():
    assert {to for _, _, to in legal_steps()} == set(STATUSES) - {"waiting"}
