"""JSON between Python values and text, exactly: integers of any size, and no NaN.

A text that is not JSON and a value that JSON cannot hold raise ValueError with the reason in
words; whoever calls knows what it belongs to.
"""

from __future__ import annotations

import json
import sys
from decimal import Decimal


def encode(value: object) -> str:
    """The shortest JSON text of a value."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except TypeError as error:
        raise ValueError(
            f"{error}; JSON has null, booleans, numbers, texts, lists and objects"
        ) from None
    except RecursionError:
        raise ValueError("it is nested too deeply, or contains itself") from None
    except ValueError as error:
        raise ValueError(_number_finding(error)) from None
    try:
        text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair is no Unicode, but JSON can spell it.
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text


def decode(text: str) -> object:
    """The value of a JSON text."""
    try:
        value: object = json.loads(text, parse_int=_parse_int, parse_constant=_refuse_constant)
        return value
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise ValueError(f"it is not valid JSON: {error.msg} at {where}") from None


def _parse_int(digits: str) -> int:
    # Python refuses to read very long numbers, as int() takes time quadratic in the digits;
    # Decimal does not, and the length is bounded by the size of what is stored.
    return (
        int(digits)
        if len(digits) <= sys.int_info.default_max_str_digits
        else int(Decimal(digits))
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"it is not valid JSON: {name} is no number there")


def _number_finding(error: ValueError) -> str:
    if "integer string conversion" in str(error):
        return "an integer has too many digits for Python to write; give the JSON as text"
    if "ircular" in str(error):
        return "it contains itself"
    return "NaN and infinity are no JSON numbers; use null or a text"
