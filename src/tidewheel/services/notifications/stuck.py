"""Why a run is stalled, in a few words: the tasks that keep it, and what they need."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tidewheel.core.sched.explain import why
from tidewheel.core.sched.stall import root_causes
from tidewheel.errors import Refused
from tidewheel.ports.store import Store
from tidewheel.services.notifications.messages import REASON_MAX, TASKS_NAMED_MAX, Notification
from tidewheel.services.workflow_state import DefinitionOf
from tidewheel.views.snapshot import gather

REASONS_MAX = 5


async def stuck_because(
    store: Store, home: Path, definition_of: DefinitionOf, message: Notification
) -> Notification:
    """The message with what keeps the run; as it is if nobody can tell any more."""
    try:
        view = await store.find_run(message.run)
        looked = await gather(store, view, home, recall=False, definition_of=definition_of)
    except (Refused, OSError):
        return message
    causes = root_causes(looked.pool) if looked.started else []
    said = [
        reason.text for task in causes[:REASONS_MAX] for reason in why(looked.pool, task.key)
    ]
    reason = "; ".join(dict.fromkeys(said)) or message.reason
    return msgspec.structs.replace(
        message,
        reason=reason[:REASON_MAX],
        tasks=tuple(looked.id_of(task.key) for task in causes[:TASKS_NAMED_MAX]),
        count=len(causes),
    )
