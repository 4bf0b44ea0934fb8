"""What makes two submissions under one id the same: everything but the id."""

from __future__ import annotations

import hashlib
from dataclasses import astuple, replace

import msgspec

from tidewheel.core.tasks.retry import Exponential, FixedDelays, RetryPolicy
from tidewheel.core.tasks.task import NewTask

# Left out, so that a task has the digest that it had before it could ask for these.
_ONE_SHARED_NODE = b',"nodes":1,"exclusive":false,"buffer_bytes":0,"idle_nodes":null}'


def digest_of(task: NewTask) -> str:
    """A short text that tells the body of one task from that of any other."""
    whole = msgspec.json.encode(_in_floats(task), order="deterministic")
    # The id is the first field. What it says cannot end it: there a quote has a backslash.
    body = whole[whole.index(b',"queue":') :].replace(_ONE_SHARED_NODE, b"}", 1)
    return hashlib.blake2b(body, digest_size=16).hexdigest()


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
