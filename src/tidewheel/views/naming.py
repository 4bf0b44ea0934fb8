"""Which tasks are meant by somebody who only looks; those that ended are found, too."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from tidewheel.core.operator.selection import read_id, select
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Refused
from tidewheel.views.run import known_tasks
from tidewheel.views.snapshot import RunSnapshot
from tidewheel.views.status_text import ACTIVE, words_of

TASKS_MAX = 100  # shown in full by one request


def find_tasks(looked: RunSnapshot, texts: Iterable[str]) -> tuple[Key, ...]:
    """Globs, families and whole points take every task that is known, in the pool or not.

    A bare name, or a glob that fits names only, is meant at whichever point. (R001-51)
    """
    known = [key for there in known_tasks(looked).values() for key in there]
    points = {looked.pool.plan.text(key[0]) for key in known}
    found: set[Key] = set()
    for text in texts:
        head, status = _selected(text)
        ids = [_with_point(looked, head, known, points)]
        meant = select(looked.pool, ids, all_at_point=not status, also=known)
        fitting = {key for key in meant if not status or _fits(looked, key, status)}
        if not fitting:
            raise Refused(f"{text}: of {len(meant)} tasks that could be meant none is {status}")
        found |= fitting
    return tuple(sorted(found))


def _selected(text: str) -> tuple[str, str]:
    """An id and the status by which it chooses: here tasks that have ended have one, too."""
    status = "" if "/" not in text and ":" not in text else read_id(text).status
    return (text.rpartition(":")[0], status) if status else (text, "")


def _fits(looked: RunSnapshot, key: Key, status: str) -> bool:
    words = words_of(looked.pool, key)
    fitting = [words.state, *words.remarks]
    fitting += ["active"] if words.state in ACTIVE else []
    fitting += ["pending"] if {"xtrigger", "retrying"} & set(words.remarks) else []
    return any(fnmatchcase(word, status) for word in fitting)


def _with_point(looked: RunSnapshot, text: str, known: Iterable[Key], points: set[str]) -> str:
    nodes = looked.pool.plan.nodes
    if text in nodes:
        return _first_of(looked, text, known)
    names = (*nodes, *looked.graph.families)
    if "/" in text or not any(fnmatchcase(name, text) for name in names):
        return text
    return text if any(fnmatchcase(point, text) for point in points) else f"*/{text}"


def _first_of(looked: RunSnapshot, name: str, known: Iterable[Key]) -> str:
    """Wherever it is known; if nowhere, its first point is what there is to be seen."""
    node = looked.graph.nodes.get(name)  # None: a reload removed it
    first = None if node is None else node.first_from(looked.pool.run.start)
    if first is None or any(key[1] == name for key in known):
        return f"*/{name}"
    return f"{looked.pool.plan.text(first)}/{name}"


def find_task(looked: RunSnapshot, text: str) -> tuple[Key, int | None]:
    """One task, and its submit number if one was named."""
    found = find_tasks(looked, [text])
    submit = None if text in looked.pool.plan.nodes else read_id(text).submit
    return found[-1], submit
