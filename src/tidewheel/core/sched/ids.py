"""Which tasks an intervention may name."""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.core.graph.spelling import nearest
from tidewheel.core.sched.pool import Pool
from tidewheel.core.sched.states import Key
from tidewheel.errors import Refused


def refuse_unknown(pool: Pool, keys: Iterable[Key]) -> None:
    """Raise, before anything is changed, if a task is not in the graph."""
    for point, name in keys:
        node = pool.plan.nodes.get(name)
        if node is None:
            like = nearest(name, pool.plan.nodes)
            hint = f"; did you mean {like}?" if like else ""
            raise Refused(f"there is no task {name} in this workflow{hint}")
        if not node.is_at(point) and (point, name) not in pool.tasks:
            text = pool.plan.text(point)
            raise Refused(f"{name} is on no sequence at {text}: there is no {text}/{name}")
