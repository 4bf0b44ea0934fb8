"""Finds submitted tasks of a run that wait until somebody does something, and for what."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Container, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tidewheel.cli.output import plural
from tidewheel.cli.pages.format import documents, texts
from tidewheel.core.graph.checks.names import some
from tidewheel.errors import Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidewheel.core.sched.task_state import Key
    from tidewheel.ports.runs import RunDoor

ASKED_MAX = 20  # of those that wait; one look at a worker's queue each
TOLD_MAX = 5
UNTAKEN_SECONDS = 5.0  # after a submission: a worker that can take it has done so by then
SHARE_MAX = 0.05  # of the time, for looking at a run that is driven here

Causes = dict[str, list[str]]  # what would help, and the tasks that wait for it
Submission = tuple["Key", int]
Untaken = Sequence[Submission] | None  # what no worker has taken, in order; None: unknown


class UntakenWaits:
    """Tells once each reason why no worker takes tasks of a run, and what would help.

    Of a run that is driven in this process it tells only what workers lack, since the page
    tells the rest.
    """

    def __init__(self, door: RunDoor, run: str, *, is_here: bool) -> None:
        self._door, self._run, self._is_here = door, run, is_here
        self._told: set[str] = set()

    async def new_lines(self) -> list[str]:
        found = await _causes(self._door, self._run, only_queues=self._is_here)
        new = {cause: ids for cause, ids in found.items() if cause not in self._told}
        self._told.update(new)
        lines = [
            f"{some(ids)} {'waits' if len(ids) == 1 else 'wait'}: {cause}"
            for cause, ids in new.items()
        ]
        others = plural(len(lines) - TOLD_MAX, "other reason")
        more = f"tasks also wait for {others}; see: tidewheel why"
        return [*lines[:TOLD_MAX], more] if len(lines) > TOLD_MAX else lines

    async def watch(
        self,
        submitted: asyncio.Event,
        untaken: Callable[[], Untaken],
        tell: Callable[[str], None],
    ) -> None:
        """Tells, some seconds after each submission, which tasks no worker has taken.

        ``untaken`` says what is in the queue, as the run's driver knows it: while workers take
        one after the other there is nothing to look for, and a look costs as much as many jobs.
        """
        loop, pause = asyncio.get_running_loop(), UNTAKEN_SECONDS
        overtaken: set[Submission] = set()
        while True:
            await submitted.wait()
            submitted.clear()
            before = untaken()
            await asyncio.sleep(pause)
            if before is not None:
                left, passed = set(untaken() or ()), overtaken
                overtaken = _overtaken(before, left)
                is_standing = left.issuperset(before)  # nothing of it was taken
                if not before or not (is_standing or overtaken & passed):
                    if left:
                        submitted.set()
                    continue
            began = loop.time()
            with suppress(Unavailable, Refused):
                for line in await self.new_lines():
                    tell(line)
            pause = max(UNTAKEN_SECONDS, (loop.time() - began) / SHARE_MAX)


def _overtaken(before: Sequence[Submission], left: Container[Submission]) -> set[Submission]:
    """Returns those that are left although a later one was taken. Some are for a moment only,
    as starts are heard a little later."""
    last = max((place for place, one in enumerate(before) if one not in left), default=0)
    return {one for one in before[:last] if one in left}


async def _causes(door: RunDoor, run: str, *, only_queues: bool = False) -> Causes:
    shown = await door.look("show", {"run": run})
    queued = [str(one["id"]) for one in documents(shown, "active") if not one["started_at"]]
    found: Causes = {}
    if not queued:
        return found
    told = await door.look("why", {"run": run, "ids": _one_of_each_first(queued)[:ASKED_MAX]})
    for task in documents(told, "tasks"):
        stuck = [one for one in documents(task, "reasons") if not one["passes"]]
        if only_queues:  # what acts on a run is no matter of workers
            stuck = [one for one in stuck if not one["actions"]]
        if stuck:
            words = (": ".join([str(one["text"]), *texts(one, "commands")]) for one in stuck)
            found.setdefault("; ".join(words), []).append(str(task["id"]))
    return found


def _one_of_each_first(ids: Iterable[str]) -> list[str]:
    """Returns the ids with one task of each name first: tasks of one name mostly wait alike."""
    seen: Counter[str] = Counter()
    ranked = []
    for one in ids:
        name = one.rpartition("/")[2]
        ranked.append((seen[name], one))
        seen[name] += 1
    return [one for _, one in sorted(ranked, key=lambda pair: pair[0])]
