"""Finds what made a run take as long as it took: from its last submission to its first.

Each submission was made because something ended (or began) last: one of its parents, or the
failed submission of the same task before it. Whatever was last is the step before on the path.
A task that waits for nothing was kept back by the runahead limit: what ended last at an earlier
point let it go.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidewheel.api.run_details import CriticalPath, CriticalStep
from tidewheel.core.operator.names import read_job_name
from tidewheel.core.operator.views import SubmissionView
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.task_state import Key
from tidewheel.quantities import show_instant
from tidewheel.views.run import Submissions, known_tasks
from tidewheel.views.snapshot import RunSnapshot
from tidewheel.views.task_lookup import parents
from tidewheel.vocabulary import time_text

STEPS_MAX = 5_000

Step = tuple[Key, SubmissionView]


def critical_path_document(
    snapshot: RunSnapshot, submissions: Submissions, last: Key | None = None
) -> CriticalPath:
    """The way to one task, or to what ended last or runs; first step first."""
    steps = list(_back(snapshot, submissions, _end(snapshot, submissions, last)))[::-1]
    begun = steps[0][1].submitted_at if steps else None
    over = None if not steps else steps[-1][1].ended_at or snapshot.now
    return {
        "run": snapshot.view.name,
        "seconds": None if begun is None or over is None else max(0.0, over - begun),
        "steps": [_step(snapshot, step) for step in steps],
    }


def _end(snapshot: RunSnapshot, submissions: Submissions, last: Key | None) -> Step | None:
    keys = (
        [last] if last else [key for there in known_tasks(snapshot).values() for key in there]
    )
    found = [(key, one) for key in keys for one in _of(snapshot, submissions, key)[-1:]]
    # What runs is later than anything that has ended.
    return max(
        found, key=lambda step: (_over(step[1], snapshot.now), step[1].seq), default=None
    )


def _over(one: SubmissionView, now: Instant) -> Instant:
    return now if one.ended_at is None else one.ended_at


def _back(snapshot: RunSnapshot, submissions: Submissions, step: Step | None) -> Iterator[Step]:
    for _ in range(STEPS_MAX):
        if step is None:
            return
        yield step
        step = _before(snapshot, submissions, step)


def _before(snapshot: RunSnapshot, submissions: Submissions, step: Step) -> Step | None:
    key, one = step
    known = snapshot.pool.plan.nodes
    keys = [key, *(parent for parent in parents(snapshot.pool, key) if parent[1] in known)]
    found = [
        (moment, other.seq, (parent, other))
        for parent in dict.fromkeys(keys)
        for other in _of(snapshot, submissions, parent)
        if other.seq < one.seq
        # What succeeded is not tried again; somebody wanted it anew, in a flow of its own.
        and (parent != key or other.status == "failed")
        and (moment := _moment(other, one.submitted_at)) is not None
    ]
    if found:
        return max(found, key=lambda each: each[:2])[2]
    return _released_by(snapshot, submissions, step)


def _released_by(snapshot: RunSnapshot, submissions: Submissions, step: Step) -> Step | None:
    """Returns what ended last, at an earlier point, before a task without parents began."""
    (point, name), one = step
    node = snapshot.pool.plan.nodes[name]
    waits_for_time = bool(node.xtriggers) or node.clock is not None
    if waits_for_time or read_job_name(one.task_id).submit > 1 or node.arrows_at(point):
        return None
    found = [
        (other.ended_at, other.seq, (key, other))
        for key in (key for there in known_tasks(snapshot).values() for key in there)
        if key[0] < point
        for other in _of(snapshot, submissions, key)
        if other.ended_at is not None and other.ended_at <= one.submitted_at
    ]
    return max(found, key=lambda each: each[:2])[2] if found else None


def _moment(other: SubmissionView, until: Instant) -> Instant | None:
    """The last thing of it that can have let something follow at that time."""
    times = (other.ended_at, other.started_at)
    return max((at for at in times if at is not None and at <= until), default=None)


def _of(snapshot: RunSnapshot, submissions: Submissions, key: Key) -> list[SubmissionView]:
    return list(submissions.get((snapshot.pool.plan.text(key[0]), key[1]), ()))


def _step(snapshot: RunSnapshot, step: Step) -> CriticalStep:
    key, one = step
    return {
        "id": snapshot.id_of(key),
        "submit": read_job_name(one.task_id).submit,
        "task": one.task_id,
        "status": one.status,
        "queued_at": show_instant(one.submitted_at),
        "started_at": time_text(one.started_at),
        "ended_at": time_text(one.ended_at),
    }
