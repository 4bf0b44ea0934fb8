"""What attempts left outside of this machine's processes, when their leases are over.

A container does not end because its worker died, or because somebody else took its task. So a
worker whose runners reach such things looks, when it starts and from time to time, what there
is of its store, and asks the store of which attempts the lease still runs. What is there was
made under a lease; so whatever the store knows no lease of by then is nobody's.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidewheel.core.queue.status import LEASED
from tidewheel.errors import NotFound
from tidewheel.ports.runners import Leftover, Runner, TidyRunner
from tidewheel.ports.tasks import TaskStore


async def remove_leftovers(
    store: TaskStore, runners: Sequence[Runner], store_name: str
) -> list[Leftover]:
    """Remove what belongs to no lease; what was removed."""
    removed = []
    for runner in runners:
        if isinstance(runner, TidyRunner):
            for leftover in await runner.leftovers(store_name):
                if not await _is_leased(store, leftover):
                    await runner.remove(leftover)
                    removed.append(leftover)
    return removed


async def _is_leased(store: TaskStore, leftover: Leftover) -> bool:
    try:
        task = await store.get(leftover.task_id)
    except NotFound:  # kept no longer than the store keeps tasks
        return False
    return task.status in LEASED and task.attempt == leftover.attempt
