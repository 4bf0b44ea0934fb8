"""Rows about workers, and their conversion to core values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tidewheel.core.tasks.requests import Abilities, HostProcess
from tidewheel.core.tasks.views import WorkerView
from tidewheel.store.rows import resources


def worker_view(row: Sequence[Any]) -> WorkerView:
    """From list_workers."""
    (id_, name, host, boot_id, pid, started, queues, slots, cpu, memory, gpu, labels) = row[:12]
    return WorkerView(
        id=id_,
        name=name,
        process=HostProcess(host=host, boot_id=boot_id, pid=pid, started=started),
        queues=tuple(json.loads(queues)),
        slots=slots,
        capacity=resources(cpu, memory, gpu, labels),
        leases=row[12],
        registered_at=row[13],
        seen_at=row[14],
        stopped_at=row[15],
        trouble=row[16],
        abilities=abilities(row[17]),
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
