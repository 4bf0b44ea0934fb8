"""Tokens: which texts are any, and what the one of a job proves (S6)."""

import base64
import hashlib
import hmac

import pytest

from tidewheel.core.queue.tokens import (
    LENGTH_MAX,
    attempt_token,
    read_attempt_token,
    secret_digest,
    split_token,
)

KEY = b"5e" * 32
TASK = "vis/Köln 1"


def plain(content):
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def a_token():
    """The second attempt of task number 41, whose worker has the token 7."""
    return attempt_token(7, KEY, (TASK, 41), 2)


def test_the_token_of_a_job_says_its_attempt_and_proves_it_by_a_key_of_servers():
    said = f"attempt token\0{7}\0{41}\0{2}\0{TASK}".encode()
    code = plain(hmac.digest(KEY, said, "sha256"))
    assert a_token() == f"twa.7.2.{plain(TASK.encode())}.{code}"
    assert read_attempt_token(a_token()) == (7, TASK, 2, code)


def test_the_token_of_a_job_is_proven_by_nothing_but_what_it_was_made_from():
    read = read_attempt_token(a_token())
    assert read.is_proven_by(KEY, 41)
    assert not read.is_proven_by(b"5f" * 32, 41), "another key"
    assert not read.is_proven_by(KEY, 42), "a later task that has the same id"
    for claimed in (
        read._replace(attempt=3),
        read._replace(parent=8),
        read._replace(task_id="vis/Köln 2"),
        read._replace(code="A" * 43),
    ):
        assert not claimed.is_proven_by(KEY, 41)


CODE = "A" * 43


@pytest.mark.parametrize(
    "text",
    [
        "",
        "twa.",
        f"tw_7_{CODE}",
        f"twa.0.1.YQ.{CODE}",  # tokens and attempts count from 1
        f"twa.1.0.YQ.{CODE}",
        f"twa.1.1..{CODE}",
        f"twa.1.1.YQ.{CODE}A",
        f"twa.1.1.YQ.{CODE}\n",
        f"twa.1.1.YQ==.{CODE}",
        f"twa.1.1.YWFhY.{CODE}",  # no whole number of bytes
        f"twa.1.1.{plain(b'a' + bytes([255]))}.{CODE}",  # no text
        f"twa.1.1.{'YWFh' * (LENGTH_MAX // 4)}.{CODE}",
    ],
)
def test_what_has_not_the_form_of_a_job_s_token_is_none(text):
    assert read_attempt_token(f"twa.1.1.YQ.{CODE}").task_id == "a"
    assert read_attempt_token(text) is None


def test_a_token_is_a_number_and_a_secret():
    assert split_token(f"tw_12_{CODE}") == (12, CODE)
    for text in ("", CODE, f"tw_0_{CODE}", f"tw_1_{CODE}A", f"tw_1_{CODE}\n", a_token()):
        assert split_token(text) is None


def test_of_a_secret_its_digest_is_kept():
    assert secret_digest("secret") == hashlib.new("sha256", b"secret").hexdigest()
    assert "secret" not in secret_digest("secret")
