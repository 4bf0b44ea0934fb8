"""Tasks as far as somebody asked for them: with fields=, or in the words of a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tidewheel.server.wire.forms import Out
from tidewheel.server.wire.tasks import TaskOut

if TYPE_CHECKING:
    TaskPart = TaskOut
else:
    # The fields of a task, none of which must be there.
    TaskPart = msgspec.defstruct(
        "TaskPart",
        [
            (field.encode_name, field.type | msgspec.UnsetType, msgspec.UNSET)
            for field in msgspec.structs.fields(TaskOut)
            if field.type is not msgspec.Raw
        ],
        bases=(Out,),
        namespace={"__doc__": "A task with some of its fields, or with those of a seed."},
    )


class TaskPage(Out):
    """Tasks, newest first; ``next`` is what ``before`` is for the page after."""

    tasks: list[TaskPart]
    next: int | None
