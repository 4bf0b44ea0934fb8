"""JSON that comes back as it went in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.exact_json import check_numbers, decode, decode_stored, encode

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.slow
@given(VALUES)
def test_every_json_value_comes_back_and_can_be_stored(value):
    text = encode(value)
    assert decode(text) == value
    assert "\0" not in text.encode().decode()


@pytest.mark.parametrize("digits", [20, 4300])
def test_integers_have_up_to_4300_digits(digits):
    assert decode("7" * digits) % 10**9 == 777_777_777
    assert decode("-" + "7" * digits) < 0


@pytest.mark.parametrize("digits", [4301, 1_000_000])
@pytest.mark.parametrize("form", ["{}", "-{}", '{{"a": [{}]}}'])
def test_a_longer_integer_is_refused_before_it_is_read(digits, form):
    text = form.format("7" * digits)
    with pytest.raises(ValueError, match="more than 4300 digits"):
        decode(text)
    with pytest.raises(ValueError, match="more than 4300 digits"):
        check_numbers(text.encode())


def test_a_longer_integer_that_was_stored_once_comes_as_a_text():
    assert decode_stored("[1, -" + "7" * 5000 + "]") == [1, "-" + "7" * 5000]


@pytest.mark.parametrize(
    "text",
    [
        '{"log": "' + "7" * 5000 + '"}',
        '["\\"' + "7" * 5000 + '", 1]',
        '["\\\\", "' + "7" * 5000 + '"]',
        ("7" * 4300 + ",") * 3,
        '"' + "7" * 5000,
        '"\\',
    ],
)
def test_digits_in_texts_are_no_numbers(text):
    check_numbers(text.encode())


def test_a_long_number_behind_texts_is_found():
    for text in ('["a\\"", %s]', '["\\\\", %s]', '{"%s": %%s}' % ("7" * 9000), "1.%s", "%se5"):
        with pytest.raises(ValueError, match="digits"):
            check_numbers((text % ("7" * 4301)).encode())


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
