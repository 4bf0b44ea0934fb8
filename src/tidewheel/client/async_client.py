"""Is the asynchronous client: every request that an application can make of a store.

Refusals and failures are the errors of ``tidewheel.errors``. A client may be used by any
number of coroutines of one event loop.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Unpack

from tidewheel.api.tasks import Task
from tidewheel.client.fields import Filters, task_filter
from tidewheel.client.leases import LeaseApi
from tidewheel.client.read_api import ReadApi
from tidewheel.client.write_api import WriteApi
from tidewheel.core.queue.requests import KeysetPage

if TYPE_CHECKING:
    from tidewheel.client.runs import Runs
    from tidewheel.client.workflows import Blocks, Workflows
    from tidewheel.core.operator.stream import FollowedEvent


class AsyncClient(WriteApi, ReadApi, LeaseApi):
    """``async with AsyncClient("postgresql://…") as client: await client.submit(…)``.

    The address of a server, ``https://…``, does as well. Without an address it uses the store
    or the server of this user (docs/configuration.md). A store
    that is given is shared, and closed by whoever opened it.
    """

    @property
    def runs(self) -> Runs:
        """Runs of workflows: look at them, and act on those that a scheduler drives."""
        # Whoever only uses the queue need not load what knows about runs.
        from tidewheel.client.runs import Runs

        return Runs(self)

    @property
    def workflows(self) -> Workflows:
        """The registry: definitions by name and version, and runs of them."""
        from tidewheel.client.workflows import Workflows

        return Workflows(self)

    @property
    def blocks(self) -> Blocks:
        """Scheduling block instances, processing blocks and buffer objects."""
        from tidewheel.client.workflows import Blocks

        return Blocks(self)

    async def events(
        self,
        *,
        since: str | None = None,
        run: str | None = None,
        queue: str | None = None,
        kind: str | None = None,
    ) -> AsyncGenerator[FollowedEvent, None]:
        """Yields what happens from now on, or after the id of an event: `task`, `run`.

        The first is `start`, with the id from where it begins. After `resync` something was
        missed, which nobody can tell any more: look anew, then go on reading. A server or a
        database that is away for a while is waited for.
        """
        # Whoever only uses the queue need not load what knows about runs.
        from tidewheel.client.runs import follow

        async with aclosing(follow(self.store, since, run, queue, kind)) as events:  # type: ignore[type-var]
            async for event in events:
                yield event

    # Here and not in ReadApi: a method of this name hides the type in its class.
    async def list(
        self, *, limit: int = 100, before: int | None = None, **which: Unpack[Filters]
    ) -> Sequence[Task]:
        """Tasks, newest first; ``before`` is the ``seq`` of the last one of the page before."""
        page = KeysetPage(count=limit, before=before)
        found = await self.store.list_tasks(task_filter(**which), page)
        return found

    async def close(self) -> None:
        """Sign off as a worker, if it was one, and let go of a store that it opened itself."""
        try:
            await self.sign_off()
        finally:
            await super().close()
