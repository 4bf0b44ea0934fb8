"""The table of verbs is whole: each command has its row, each row what is said of it."""

from typing import get_args

import pytest

from tidewheel.cli.verbs import ROWS
from tidewheel.core.operator.command_events import _RULES
from tidewheel.core.operator.verbs import REOPENING_VERBS, TABLE, VERBS, Command, RunVerb


def test_every_command_has_one_row():
    assert [row.command for row in TABLE] == list(get_args(Command))
    assert list(VERBS) == [row.name for row in TABLE]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_a_row_says_what_the_verb_does(row: RunVerb):
    assert row.wish
    assert row.done
    assert row.by_scheduler is (row.command not in _RULES)


def test_what_reopens_a_run_can_be_tried_first():
    assert set(REOPENING_VERBS) <= {verb.name for verb in ROWS if verb.dry_run}
