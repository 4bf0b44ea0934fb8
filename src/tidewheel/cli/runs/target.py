"""Which run, and which of its tasks, the words of a command line mean.

RUN comes first: a name, a number or the beginning of a name. `RUN//ID` is both at once, as Cylc
users write it. Where only one run can be meant it may be left out, and the first word is an id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tidewheel.client.runs import Runs

BETWEEN = "//"
SIGNS_OF_IDS = "/.*?[:^$"


class Target(NamedTuple):
    """A run, and what stood behind it."""

    run: str
    rest: tuple[str, ...] = ()


async def find_target(runs: Runs, words: Sequence[str], *, any_word: bool = False) -> Target:
    """Looked up in the store; refused if there is no such run, or more than one."""
    from tidewheel.errors import NotFound

    if not words:
        return Target((await runs.find()).name)
    first, *rest = words
    run, between, tail = first.partition(BETWEEN)
    if between:
        ids = (tail, *rest) if tail else tuple(rest)
        return Target((await runs.find(run)).name, _without_signs(ids))
    try:
        return Target((await runs.find(first)).name, _without_signs(rest))
    except NotFound:
        if not any_word and (not looks_like_id(first) or await _names_workflow(runs, first)):
            raise
    return Target((await runs.find()).name, _without_signs(words))


async def _names_workflow(runs: Runs, word: str) -> bool:
    """`forecast/run9` is a run that is not there, and no task."""
    workflow = word.partition("/")[0]
    return bool((await runs.list(workflow=workflow, count=1))["runs"])


def target_in_job(own_run: str, words: Sequence[str], *, any_word: bool = False) -> Target:
    """Inside a job: the job's own run need not be named, and is known without a store."""
    if not words:
        return Target(own_run)
    first, *rest = words
    run, between, tail = first.partition(BETWEEN)
    if between:
        ids = (tail, *rest) if tail else tuple(rest)
        return Target(run or own_run, _without_signs(ids))
    if first == own_run or own_run.startswith(f"{first}/"):
        return Target(own_run, _without_signs(rest))
    if any_word or looks_like_id(first):
        return Target(own_run, _without_signs(words))
    return Target(first, _without_signs(rest))


def looks_like_id(word: str) -> bool:
    """A number is that of a run if there is one, else a point."""
    return word.isdigit() or any(sign in word for sign in SIGNS_OF_IDS)


def _without_signs(ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(one.removeprefix(BETWEEN) for one in ids)
