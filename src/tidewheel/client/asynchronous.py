"""The asynchronous client: every request that an application can make of a store.

Refusals and failures are the errors of ``tidewheel.errors``. A client may be used by any
number of coroutines of one event loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from tidewheel.client.filters import Filters, task_filter
from tidewheel.client.leasing import Leasing
from tidewheel.client.looking import Looking
from tidewheel.client.results import Task
from tidewheel.client.submitting import Submitting
from tidewheel.core.tasks.requests import Page

if TYPE_CHECKING:
    from tidewheel.client.runs import Runs


class AsyncClient(Submitting, Looking, Leasing):
    """``async with AsyncClient("postgresql://…") as client: await client.submit(…)``.

    Without an address it uses the store of this user (see ``tidewheel.config``). A store
    that is given is shared, and closed by whoever opened it.
    """

    @property
    def runs(self) -> Runs:
        """Runs of workflows: look at them, and act on those that a scheduler drives."""
        # Whoever only uses the queue need not load what knows about runs.
        from tidewheel.client.runs import Runs  # noqa: PLC0415

        return Runs(self)

    # Here and not in Looking: a method of this name hides the type in its class.
    async def list(
        self, *, limit: int = 100, before: int | None = None, **which: Unpack[Filters]
    ) -> Sequence[Task]:
        """Tasks, newest first; ``before`` is the ``seq`` of the last one of the page before."""
        page = Page(count=limit, before=before)
        found = await self.store.list_tasks(task_filter(**which), page)
        return [Task.of(view) for view in found]

    async def close(self) -> None:
        """Sign off as a worker, if it was one, and let go of a store that it opened itself."""
        try:
            await self.sign_off()
        finally:
            await super().close()
