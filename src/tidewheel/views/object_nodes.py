"""Which nodes of a run stand for buffer objects, and how somebody posts one."""

from __future__ import annotations

import shlex

from tidewheel.core.sched.task_state import Key
from tidewheel.formats.sip.names import OBJECT_PREFIX
from tidewheel.views.snapshot import RunSnapshot

OBJECT_TITLE = "buffer object "


def object_name(looked: RunSnapshot, key: Key) -> str | None:
    """The buffer object that a node stands for; None for any other task."""
    node = looked.pool.plan.nodes.get(key[1])
    if node is None or not key[1].startswith(OBJECT_PREFIX):
        return None
    title = dict(node.definition.meta).get("title", "")
    return title.removeprefix(OBJECT_TITLE) if title.startswith(OBJECT_TITLE) else None


def post_commands(looked: RunSnapshot, key: Key, text: str) -> list[str]:
    """For the objects at a task's point of which a reason speaks."""
    if OBJECT_PREFIX not in text:
        return []
    others = (
        (key[0], name) for name in looked.pool.plan.nodes if name.startswith(OBJECT_PREFIX)
    )
    spoken = (object_name(looked, one) for one in others if looked.id_of(one) in text)
    return [post_command(name) for name in spoken if name is not None]


def post_command(name: str) -> str:
    return f"tidewheel objects post {shlex.quote(name)}"
