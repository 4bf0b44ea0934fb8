"""Secrets in what jobs say: every form in which they are printed, however it is cut."""

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.runners.sanitize import VARIABLES, masked, masked_texts, secrets_in
from tidewheel.runners.shell.masked_output import MaskedStream, masked_bytes

PEM = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END KEY-----"


def in_pieces(text, sizes, secrets):
    stream, rest, made = MaskedStream(masked_texts(secrets)), text.encode(), b""
    for size in sizes:
        made, rest = made + stream.feed(rest[:size]), rest[size:]
    return (made + stream.feed(rest) + stream.end()).decode()


LETTERS = st.text("ab'\"\\\né ", min_size=0, max_size=30)
SECRETS = st.lists(st.text("ab'\"\\é", min_size=6, max_size=12), min_size=1, max_size=3)


@given(LETTERS, SECRETS, LETTERS, st.lists(st.integers(1, 7), max_size=30))
def test_no_secret_comes_through_however_a_job_writes_it(before, secrets, after, sizes):
    text = before + secrets[0] + after + "".join(secrets)
    made = in_pieces(text, sizes, secrets)
    assert not any(one in made for one in secrets)


@given(st.text("xyz\n", max_size=200), SECRETS, st.lists(st.integers(1, 7), max_size=30))
def test_all_else_comes_through_as_it_is(text, secrets, sizes):
    assert in_pieces(text, sizes, secrets) == text


@given(LETTERS, st.lists(st.integers(1, 5), max_size=20))
def test_the_pieces_do_not_matter(text, sizes):
    secrets = ["aabb'b", "ab'b\\a", "bbbbbbbb"]
    whole = masked_bytes(text.encode(), masked_texts(secrets)).decode()
    assert in_pieces(text, sizes, secrets) == whole


@pytest.mark.parametrize(
    "value", ["pass word", "it's-me", 'quo"ted', "bäck\\slash", "tab\tbed"]
)
def test_a_value_is_known_as_json_and_a_shell_write_it(value):
    hidden = masked_texts([value])
    for form in (value, json.dumps(value), json.dumps(value, ensure_ascii=False)):
        assert "***" in masked(f"x {form} y", hidden)
        assert value not in masked(form, hidden)
    assert masked(shlex.quote(value), hidden) != shlex.quote(value)


def test_each_line_of_a_value_with_several_is_a_secret():
    hidden = masked_texts([PEM])
    assert masked(PEM, hidden) == "***"
    assert masked("MIIEvQIBADANBg and kqhkiG9w0BAQEF", hidden) == "*** and ***"
    assert in_pieces(PEM.replace("\n", "\r\n"), [5] * 20, [PEM]).count("***") == 4


def test_what_may_become_a_longer_secret_is_held_back_until_it_is_known():
    stream = MaskedStream(masked_texts(["secret", "secretary-of-state"]))
    assert stream.feed(b"a secret") == b"a "
    assert stream.feed(b"ary-of") == b""
    assert stream.feed(b"-state!") == b"***!"
    assert stream.feed(b"a secret") == b"a "
    assert stream.feed(b"ary\n") == b"***ary\n"
    assert stream.feed(b"end with se") == b"end with "
    assert stream.end() == b"se"


def test_words_of_few_letters_are_no_secrets_to_be_masked():
    assert masked_texts(["12345", "a\nb"]) == ()
    assert masked("12345", masked_texts(["12345"])) == "12345"


def test_the_variables_that_are_secrets_are_named_in_the_environment():
    assert secrets_in({VARIABLES: "A GONE", "A": "x", "B": "y"}) == ["x"]
    assert secrets_in({"A": "x"}) == []
