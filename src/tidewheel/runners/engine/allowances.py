"""What compose files may ask of a worker's host, and of which queues they may come.

An entry is ``WHAT``, for every queue of the worker, or ``QUEUE:WHAT``. The worker's owner says
so, not the queue: its settings lie in the store, and the host is the worker's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidewheel.errors import BadSetting
from tidewheel.runners.engine.policy import ALLOWABLE


@dataclass(frozen=True, slots=True)
class Allowances:
    """Words of the policy's table, for everybody and by queue."""

    everywhere: frozenset[str]
    by_queue: Mapping[str, frozenset[str]]

    def of(self, queue: str) -> frozenset[str]:
        """What a task of this queue may ask for."""
        return self.everywhere | self.by_queue.get(queue, frozenset())


def read_allowances(entries: Sequence[str]) -> Allowances:
    """The entries of a worker; BadSetting names one that means nothing."""
    everywhere: set[str] = set()
    by_queue: dict[str, frozenset[str]] = {}
    for entry in entries:
        queue, colon, what = entry.rpartition(":")  # a queue may be called run:NAME
        if what not in ALLOWABLE or (colon and not queue):
            accepted = f"WHAT or QUEUE:WHAT, where WHAT is one of {', '.join(ALLOWABLE)}"
            raise BadSetting("allow-compose", entry, accepted)
        if colon:
            by_queue[queue] = by_queue.get(queue, frozenset()) | {what}
        else:
            everywhere.add(what)
    return Allowances(frozenset(everywhere), by_queue)
