"""Reads and writes JSON exactly: integers of up to 4,300 digits, and no NaN.

A text that is not JSON and a value that JSON cannot hold raise ValueError with the reason in
words; the caller knows what it belongs to.

To read or write an integer takes time quadratic in its digits, and no other task gets a turn
meanwhile: a caller who could send one of a million digits could stop a server. So the length is
looked at before anything is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from tidewheel.core.queue.submission import DIGITS_MAX, checked_digits
from tidewheel.lazy_dataclasses import pattern

# Only from where a row of digits begins: so every character is looked at once.
_LONG_NUMBER = pattern(rb"(?<![0-9])[0-9]{%d}" % (DIGITS_MAX + 1))
# A string that is not closed matches up to the end of the text, so that no search begins in it.
_TEXTS = pattern(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


_SHORTEST = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def encode(value: object) -> str:
    """Returns the shortest JSON text of a value."""
    try:
        text = _SHORTEST.encode(value)
    except TypeError as error:
        raise ValueError(
            f"{error}; JSON has null, booleans, numbers, strings, lists and objects"
        ) from None
    except RecursionError:
        raise ValueError("it is nested too deeply, or contains itself") from None
    except ValueError as error:
        raise ValueError(_number_finding(error)) from None
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair is no Unicode, but JSON can spell it.
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text


def decode(text: str) -> object:
    """Returns the value of a JSON text."""
    return _decoded(text, _GIVEN if len(text) > DIGITS_MAX else _SHORT)


def decode_stored(text: str) -> object:
    """Returns the value of a JSON text that the store holds; integers that are too long are
    texts in it.

    Earlier versions accepted numbers of any length, so such texts may still be stored.
    """
    return _decoded(text, _STORED)


def check_numbers(raw: bytes) -> None:
    """Raises ValueError if a number in a JSON text has too many digits, without converting
    it."""
    if len(raw) <= DIGITS_MAX or _LONG_NUMBER.search(raw) is None:
        return
    if found := _LONG_NUMBER.search(_TEXTS.sub(b'""', raw)):
        checked_digits(found[0].decode())


def _decoded(text: str, decoder: json.JSONDecoder) -> object:
    value: object
    try:
        value, end = decoder.raw_decode(text)
        if end == len(text):  # as in nearly all texts: nothing stands around the value
            return value
    except (ValueError, RecursionError):
        pass  # what is wrong, if anything is, is told below
    try:
        if text.startswith(_BYTE_ORDER_MARK):
            json.loads(text)  # which says so
        value = decoder.decode(text)
        return value
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise ValueError(f"it is not valid JSON: {error.msg} at {where}") from None


def _integer_or_text(digits: str) -> int | str:
    return digits if len(digits.lstrip("-")) > DIGITS_MAX else int(digits)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"it is not valid JSON: {name} is not a JSON number")


def _decoder(parse_int: Callable[[str], int | str] | None) -> json.JSONDecoder:
    """Returns a decoder, which is made once: to make it takes longer than to read a spec."""
    # An integer may also be a text.
    return json.JSONDecoder(parse_int=parse_int, parse_constant=_refuse_constant)


_BYTE_ORDER_MARK = "\ufeff"
_SHORT = _decoder(None)  # for a text in which no number is too long
_GIVEN = _decoder(lambda digits: int(checked_digits(digits)))
_STORED = _decoder(_integer_or_text)


def _number_finding(error: ValueError) -> str:
    if "integer string conversion" in str(error):
        return "an integer has too many digits for Python to write; give the JSON as text"
    if "ircular" in str(error):
        return "it contains itself"
    return "NaN and infinity are not JSON numbers; use null or a string"
