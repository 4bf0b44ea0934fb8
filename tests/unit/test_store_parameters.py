"""What is given to a query is what a database can hold, also when it is given by the column."""

from enum import IntEnum

import pytest

from tidewheel.store.transaction import as_columns, as_parameter


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
    rows = [{"a": value, "b": 1} for value in column]
    wanted = [as_parameter(value) for value in column]
    assert [*map(list, as_columns(rows, ("a", "b"), {}))] == [wanted, [1] * len(column)]
    for value in column:
        [same] = as_columns([{}], ("a",), {"a": value})
        assert list(same) == [as_parameter(value)]


def test_what_no_database_can_hold_is_in_no_column():
    rows = [{"name": name} for name in ("plain", "nul \0", "half \ud800")]
    [given] = as_columns(rows, ("name",), {})
    assert list(given) == ["plain", "nul \x1a", "half \x1a"]
