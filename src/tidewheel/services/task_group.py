"""Runs coroutines beside each other: the first that fails ends all of them.

Unlike ``asyncio.TaskGroup`` this one keeps its members in the order in which they joined, so
that a simulation cancels them in the same order every time, and raises the failure itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine


class TaskGroup:
    """Members may join at any time; ``oversee`` raises what any of them raised."""

    def __init__(self) -> None:
        self._members: dict[asyncio.Task[None], None] = {}
        self._failure: BaseException | None = None
        self._lead: asyncio.Task[None] | None = None
        self._dismissed = False

    def add(self, work: Coroutine[object, object, None]) -> None:
        if self._dismissed:  # a call from a thread that came too late
            work.close()
        else:
            _ = self.member(work)

    def member(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Like ``add``, for somebody who wants to know the member."""
        member = asyncio.get_running_loop().create_task(work)
        self._members[member] = None
        member.add_done_callback(self._leave)
        return member

    async def oversee(self, work: Coroutine[object, object, None]) -> None:
        """Do ``work``, then end everybody; a member's failure ends the work and is raised."""
        self._lead = self.member(work)
        try:
            await asyncio.wait((self._lead,))
        finally:
            await self.dismiss()
        if self._failure is not None:
            raise self._failure

    async def dismiss(self) -> None:
        """End everybody who is still at work."""
        self._dismissed = True
        while self._members:
            for member in list(self._members):
                member.cancel()
            await asyncio.wait(list(self._members))

    def _leave(self, member: asyncio.Task[None]) -> None:
        del self._members[member]
        if member.cancelled() or member.exception() is None:
            return
        if self._failure is None:
            self._failure = member.exception()
        if self._lead is not None:
            self._lead.cancel()
