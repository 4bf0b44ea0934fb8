"""What is given to a query is what a database can hold, also when it is given by the column."""

from enum import IntEnum

import pytest

from tidewheel.store.transaction import as_parameter, as_parameters


class Stage(IntEnum):
    WAITING = 0


@pytest.mark.parametrize(
    "column",
    [
        ["a", "b"],
        ["a", "é"],
        ["a", "nul \0", "b"],
        ["a", "half \ud800"],
        ["half \ud83c", "\udf0a half"],  # together they would be a whole one
        ["a", None],
        [1, 2.0, True, None, b"x"],
        [Stage.WAITING],
        [["a", "nul \0"], "a"],
        [],
    ],
)
def test_a_column_is_given_as_each_of_its_values_would_be(column):
    assert list(as_parameters(column)) == [as_parameter(value) for value in column]


def test_what_no_database_can_hold_is_in_no_column():
    given = as_parameters(["plain", "nul \0", "half \ud800"])
    assert given == ["plain", "nul \x1a", "half \x1a"]
