"""The variables that a job of a task gets from its definition, as they are set now."""

from __future__ import annotations

from tidewheel.core.sched.dependency_index import IndexedNode
from tidewheel.core.sched.task_state import Key
from tidewheel.scheduler.broadcasts import settings_for, with_settings
from tidewheel.views.run_facts import Document
from tidewheel.views.snapshot import RunSnapshot

VARIABLES_MAX = 200


def environment_document(looked: RunSnapshot, key: Key, node: IndexedNode) -> list[Document]:
    """In their order; `broadcast`: set by hand while the run was going."""
    point, definition = looked.pool.plan.text(key[0]), node.definition
    settings = settings_for(looked.stored.broadcasts, point, definition.lineage)
    by_hand = {item for item, _ in settings}
    shown = with_settings(definition, settings).environment[:VARIABLES_MAX]
    return [
        {"name": name, "value": value, "broadcast": f"[environment]{name}" in by_hand}
        for name, value in shown
    ]
