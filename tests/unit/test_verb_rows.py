"""The rows of the verbs: each command of operators has one, which fits its fields."""

from collections import Counter
from dataclasses import fields

import pytest

from tidewheel.cli.verbs import ROWS, TABLE
from tidewheel.core.operator.verbs import VERBS


def test_every_command_has_one_row_and_every_row_a_command():
    assert {verb.name for verb in ROWS} == VERBS.keys()
    assert len(TABLE) == len(ROWS)


@pytest.mark.parametrize("verb", ROWS, ids=lambda verb: verb.name)
def test_options_fill_fields_of_the_command(verb):
    known = {field.name for field in fields(VERBS[verb.name])}
    assert {option.field for option in verb.options} <= known
    if verb.cylc is not None:
        assert verb.cylc.always.keys() <= known


def test_a_key_or_a_name_of_cylc_means_one_verb():
    keys = Counter(verb.key for verb in ROWS if verb.key)
    calls = Counter(
        name
        for verb in ROWS
        if verb.cylc is not None
        for name in (verb.cylc.name or verb.name, *verb.cylc.aliases)
    )
    assert {*keys.values(), *calls.values()} == {1}
