"""Checks that what routes answer is what they say that they answer, key by key.

A typed dictionary is an ordinary one at run time, so nothing but this notices a key too many.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from tidewheel.server.call import Answer
from tidewheel.server.routes import Route

PLAIN = {str: str, int: int, float: (int, float), bool: bool, NoneType: NoneType}


def checked(routes: Iterable[Route]) -> tuple[Route, ...]:
    """The same routes; those with typed dictionaries raise if an answer is none of these."""
    return tuple(map(_checked, routes))


def _checked(route: Route) -> Route:
    given = route.answers
    kinds = [
        one for one in (given if isinstance(given, tuple) else (given,)) if one is not None
    ]
    if not kinds or not all(map(is_typeddict, kinds)):
        return route

    async def handler(call: Any) -> object:
        told = await route.handler(call)
        body = told.body if isinstance(told, Answer) else told
        if isinstance(told, Answer) and told.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(told.body)
        if isinstance(body, str | bytes):  # written already
            body = json.loads(body)
        found = [list(faults(body, kind)) for kind in kinds]
        assert not all(found), f"{route.verb} answers otherwise than it says: {min(found)}"
        return told

    return replace(route, handler=handler)


def faults(value: Any, kind: Any, where: str = "answer") -> Iterator[str]:
    """What is too much, missing or of another type."""
    origin, inside = get_origin(kind), get_args(kind)
    if kind is Any or (origin is Literal and value in inside):
        return
    if origin in (Union, UnionType):
        found = [list(faults(value, one, where)) for one in inside]
        yield from min(found) if all(found) else ()
    elif is_typeddict(kind) and isinstance(value, dict):
        yield from _of_keys(value, kind, where)
    elif origin in (list, dict) and isinstance(
        value, (list | tuple) if origin is list else dict
    ):
        items = value.items() if origin is dict else enumerate(value)
        for name, one in items:
            yield from faults(one, inside[-1], f"{where}[{name!r}]")
    elif not isinstance(value, PLAIN.get(kind, ())) or (
        kind is int and isinstance(value, bool)
    ):
        yield f"{where} is {value!r}"


def _of_keys(value: dict[str, Any], kind: Any, where: str) -> Iterator[str]:
    hints = get_type_hints(kind, include_extras=True)
    for name, hint in hints.items():
        is_optional = not kind.__total__ or get_origin(hint) is NotRequired
        if name not in value and not is_optional:
            yield f"{where}.{name} is missing"
    for name, one in value.items():
        if name in hints:
            hint = hints[name]
            inner = get_args(hint)[0] if get_origin(hint) is NotRequired else hint
            yield from faults(one, inner, f"{where}.{name}")
        else:
            yield f"{where}.{name} is not said"
