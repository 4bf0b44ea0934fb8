"""Tells whether two submissions under one id are the same: in everything but the id.

Theory of operation. A digest is stored with its task, and compared with that of a submission
which may come years and versions later. So it must not depend on which fields a version knows.
It is made of the fields below, with the defaults that they had, in that order, for ever. What
came later is part of it only where a task says something else than its default; a field that is
gone counts as its default. The lists are never edited: a digest that was stored would not be
found again, and a client that repeats an old submission would be refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import MISSING, astuple, fields, replace
from functools import lru_cache
from typing import Any

import msgspec

from tidewheel.core.queue.retry import Exponential, FixedDelays, RetryPolicy
from tidewheel.core.queue.task import NewTask

Defaults = Mapping[str, object]

_NO_PART = ("id", "run")  # of a digest
_TASK: Defaults = {
    "queue": "",
    "name": None,
    "spec": None,
    "command": None,
    "handler": None,
    "priority": 50,
    "delay_seconds": 0.0,
    "armed": True,
    "needs": None,  # with the fields of its own, as are `retry` and `resources`
    "continuations": (),
    "max_retries": 0,
    "retry": None,
    "max_lapses": 5,
    "timeout_seconds": None,
    "estimated_runtime_seconds": None,
    "max_termination_seconds": 10.0,
    "resources": None,
    "unique_key": None,
    "limit_key": None,
    "tag": None,
}
_NEED: Defaults = {"task_id": "", "output": "succeeded"}
_FIXED_DELAYS: Defaults = {"seconds": (0.0,)}
_EXPONENTIAL: Defaults = {
    "first_seconds": 1.0,
    "factor": 2.0,
    "seconds_max": 3600.0,
    "jitter": 0.5,
}
_RESOURCES: Defaults = {
    "cpu": 0.0,
    "memory_bytes": 0,
    "gpu": 0,
    "labels": (),
    "nodes": 1,
    "exclusive": False,
    "buffer_bytes": 0,
    "idle_nodes": None,
}
_TODAY = tuple(map(tuple, (_TASK, _RESOURCES, _FIXED_DELAYS, _EXPONENTIAL, _NEED)))
# Left out, so that a task has the digest that it had before it could ask for these.
_ONE_SHARED_NODE = b',"nodes":1,"exclusive":false,"buffer_bytes":0,"idle_nodes":null}'


def digest_of(task: NewTask) -> str:
    """Returns a short text that tells the body of one task from that of any other."""
    task = _in_floats(task)
    policy = _FIXED_DELAYS if isinstance(task.retry, FixedDelays) else _EXPONENTIAL
    if (
        _names_of(task) == _TODAY[0]
        and _names_of(task.resources) == _TODAY[1]
        and _names_of(task.retry) in _TODAY[2:4]
        and all(_names_of(need) == _TODAY[4] for need in task.needs)
    ):
        # The fields of today: they need not be picked one by one.
        whole = msgspec.json.encode(task, order="deterministic")
        # The id is the first field. What it says cannot end it: there a quote has a backslash.
        body = whole[whole.index(b',"queue":') :]
    else:
        picked = _picked(task, _TASK) | {
            "needs": [_picked(need, _NEED) for need in task.needs],
            "retry": _picked(task.retry, policy),
            "resources": _picked(task.resources, _RESOURCES),
        }
        body = b"," + msgspec.json.encode(picked)[1:]
    body = body.replace(_ONE_SHARED_NODE, b"}", 1)
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def _names_of(thing: object) -> tuple[str, ...]:
    kind: Any = type(thing)
    return _names(kind)


@lru_cache(maxsize=64)
def _names(kind: type) -> tuple[str, ...]:
    """Returns the fields of a type that may be part of a digest."""
    return tuple(one.name for one in fields(kind) if one.name not in _NO_PART)


def _picked(thing: Any, known: Defaults) -> dict[str, object]:  # noqa: ANN401 - any version's
    """Returns the fields of a digest: those of the list, and what is said besides."""
    found = {name: getattr(thing, name, default) for name, default in known.items()}
    for one in fields(thing):
        if one.name in known or one.name in _NO_PART:
            continue
        default = one.default if one.default_factory is MISSING else one.default_factory()
        if (value := getattr(thing, one.name)) != default:
            found[one.name] = value
    sets = {name: sorted(one) for name, one in found.items() if isinstance(one, frozenset)}
    return found | sets


def _in_floats(task: NewTask) -> NewTask:
    """5 and 5.0 are one number; what came by HTTP cannot tell which of them was meant."""
    times = task.delay_seconds, task.max_termination_seconds
    limits = task.timeout_seconds, task.estimated_runtime_seconds
    delays = _delays(task.retry)
    if int not in map(type, (*times, *limits, *delays, task.resources.cpu)):
        return task  # as nearly all of them are
    timeout, estimated = (None if one is None else float(one) for one in limits)
    delay, termination = map(float, times)
    return replace(
        task,
        delay_seconds=delay,
        retry=_policy(task.retry, tuple(map(float, delays))),
        timeout_seconds=timeout,
        estimated_runtime_seconds=estimated,
        max_termination_seconds=termination,
        resources=replace(task.resources, cpu=float(task.resources.cpu)),
    )


def _delays(policy: RetryPolicy) -> tuple[float, ...]:
    return policy.seconds if isinstance(policy, FixedDelays) else astuple(policy)


def _policy(policy: RetryPolicy, delays: tuple[float, ...]) -> RetryPolicy:
    if isinstance(policy, FixedDelays):
        return FixedDelays(seconds=delays)
    first, factor, longest, jitter = delays
    return Exponential(first_seconds=first, factor=factor, seconds_max=longest, jitter=jitter)
