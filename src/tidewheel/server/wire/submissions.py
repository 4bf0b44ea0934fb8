"""What became of submitted tasks, on its way out."""

from __future__ import annotations

from tidewheel.core.queue.requests import Submitted
from tidewheel.server.wire.forms import Out
from tidewheel.server.wire.problem import Problem


class SubmittedOut(Out):
    """What became of one task."""

    id: str
    created: bool  # false: the same task was there already


class AnsweredOut(Out):
    """What became of one of many tasks."""

    id: str
    created: bool
    refused: Problem | None


class RefusedOut(Out):
    """Why a task was not stored; ``index`` is its place in the request."""

    index: int
    id: str
    code: str
    message: str


class BatchOut(Out):
    """What became of many tasks; it never fails as a whole (atomic=each)."""

    inserted: list[str]
    present: list[str]
    failed: list[RefusedOut]
    invalid: list[RefusedOut]


class OrderedOut(Out):
    """What became of each task, in the order of the request (in_order=true)."""

    answers: list[AnsweredOut]


def refused_out(index: int, one: Submitted) -> RefusedOut:
    assert one.refused is not None
    return RefusedOut(index=index, id=one.id, code=one.refused.code, message=str(one.refused))
