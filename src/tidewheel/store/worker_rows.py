"""Rows about workers, and their conversion to core values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tidewheel.api.tasks import WorkerView
from tidewheel.core.queue.requests import Abilities, HostProcess
from tidewheel.store.rows import resources


def worker_view(row: Sequence[Any]) -> WorkerView:
    """From list_workers."""
    (id_, name, host, boot_id, pid, started, queues, slots) = row[:8]
    cpu, memory, gpu, labels, nodes, buffer = row[8:14]
    return WorkerView(
        id=id_,
        name=name,
        process=HostProcess(host=host, boot_id=boot_id, pid=pid, started=started),
        queues=tuple(json.loads(queues)),
        slots=slots,
        capacity=resources(cpu, memory, gpu, labels, nodes, False, buffer),
        leases=row[14],
        registered_at=row[15],
        seen_at=row[16],
        stopped_at=row[17],
        trouble=row[18],
        abilities=abilities(row[19]),
    )


def abilities_text(known: Abilities) -> str:
    """As the worker's row keeps them."""
    handlers = None if known.handlers is None else sorted(known.handlers)
    return json.dumps({"commands": known.commands, "handlers": handlers, "bare": known.bare})


def abilities(text: str) -> Abilities:
    """From a worker's row."""
    said = json.loads(text)
    handlers = None if said["handlers"] is None else frozenset(said["handlers"])
    return Abilities(commands=said["commands"], handlers=handlers, bare=said["bare"])
