"""JSON that comes back as it went in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.exact_json import decode, encode

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_every_json_value_comes_back_and_can_be_stored(value):
    text = encode(value)
    assert decode(text) == value
    assert "\0" not in text.encode().decode()


@pytest.mark.parametrize("digits", [20, 4301, 20_000])
def test_integers_have_any_size(digits):
    assert decode("7" * digits) % 10**9 == 777_777_777
    assert decode("-" + "7" * digits) < 0


def test_an_integer_that_python_cannot_write_is_refused_with_a_way_out():
    with pytest.raises(ValueError, match="give the JSON as text"):
        encode(10**5000)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (float("nan"), "NaN"),
        ([float("inf")], "infinity"),
        ({1, 2}, "set is not JSON serializable"),
        (b"x", "bytes is not JSON serializable"),
    ],
)
def test_a_value_that_json_cannot_hold_is_refused(value, why):
    with pytest.raises(ValueError, match=why):
        encode(value)


def test_a_value_that_contains_itself_is_refused():
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(ValueError, match="contains itself"):
        encode(circle)


NO_JSON = ["", "{", "{'a': 1}", "[1,]", "NaN", "[Infinity]", "1 2", "01"]


@pytest.mark.parametrize("text", NO_JSON)
def test_a_text_that_is_not_json_is_refused(text):
    with pytest.raises(ValueError, match="not valid JSON"):
        decode(text)


def test_a_text_that_is_nested_too_deeply_is_refused():
    with pytest.raises(ValueError, match="nested too deeply"):
        decode("[" * 100_000)
