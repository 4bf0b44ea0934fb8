"""Which tasks are meant by somebody who only looks; those that ended are found, too."""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.core.runs.selecting import select
from tidewheel.core.runs.task_ids import read_id
from tidewheel.core.sched.states import Key
from tidewheel.services.run_views.loading import Looked
from tidewheel.services.run_views.run_document import known_tasks

TASKS_MAX = 100  # shown in full by one request


def find_tasks(looked: Looked, texts: Iterable[str]) -> tuple[Key, ...]:
    """Globs, families and whole points take every task that is known, in the pool or not.

    A bare name is that task wherever it is known. (R001-51)
    """
    nodes = looked.pool.plan.nodes
    known = [key for there in known_tasks(looked).values() for key in there]
    ids = [f"*/{text}" if text in nodes else text for text in texts]
    plain = [one for one in ids if one.startswith("*/") and one[2:] in nodes]
    for one in plain:
        name = one[2:]
        points = [key[0] for key in known if key[1] == name]
        if not points:
            # Not spawned anywhere yet: its first point is what there is to be seen.
            first = looked.graph.nodes[name].first_from(looked.pool.run.start)
            if first is not None:
                ids[ids.index(one)] = f"{looked.pool.plan.text(first)}/{name}"
    return select(looked.pool, ids, all_at_point=True, also=known)


def find_task(looked: Looked, text: str) -> tuple[Key, int | None]:
    """One task, and its submit number if one was named."""
    found = find_tasks(looked, [text])
    submit = None if text in looked.pool.plan.nodes else read_id(text).submit
    return found[-1], submit
