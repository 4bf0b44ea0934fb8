"""How soon a scheduler decides again."""

import pytest

from tidewheel.core.operator.definition import RunOptions, StoredDefinition, StoredFile
from tidewheel.scheduler.run_driver import CYLC_PACE_SECONDS, as_compatible

QUIET = StoredDefinition(digest="d", workflow="w", text="script = sleep 10")
COMMANDING = [
    StoredDefinition(digest="d", workflow="w", text="script = cylc trigger $ID//1/a"),
    StoredDefinition(digest="d", workflow="w", text="stall handlers = cylc stop %(workflow)s"),
    StoredDefinition(
        digest="d", workflow="w", files=(StoredFile("bin/mend", b"#!/bin/sh\ncylc reload"),)
    ),
]


@pytest.mark.parametrize("definition", COMMANDING)
def test_a_run_that_commands_itself_keeps_the_pace_of_cylc_if_it_is_to_be_like_it(definition):
    assert as_compatible(RunOptions(compat="cylc8"), definition) == CYLC_PACE_SECONDS
    assert as_compatible(RunOptions(), definition) == 0.0


def test_where_nothing_is_commanded_nobody_has_to_wait():
    assert as_compatible(RunOptions(compat="cylc8"), QUIET) == 0.0
