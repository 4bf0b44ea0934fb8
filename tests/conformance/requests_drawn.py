"""What may be asked of a store, drawn by hypothesis: small worlds in which things collide."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.conformance.door import BROKEN, new_task
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import Amendment, End, Ending, QueueSettings, TaskFilter
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.retry import Exponential, FixedDelays
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import AlikeTasks, Need

IDS = [f"t{n}" for n in range(7)]
ids = st.sampled_from(IDS)
queues = st.sampled_from(["q", "q", "q", "p"])
outputs = st.sampled_from(["succeeded", "succeeded", "failed", "cancelled", "half"])
resources = st.builds(
    Resources,
    cpu=st.sampled_from([0.0, 0.0, 0.5, 2.0]),
    memory_bytes=st.sampled_from([0, 0, 5]),
    labels=st.sampled_from([frozenset(), frozenset({"x"})]),
    nodes=st.sampled_from([1, 1, 1, 2]),
    exclusive=st.sampled_from([False, False, True]),
    buffer_bytes=st.sampled_from([0, 0, 7]),
)
fields = st.fixed_dictionaries(
    {},
    optional={
        "queue": queues,
        "priority": st.sampled_from([0, 9, 100, 2**32 - 1]),
        "spec": st.sampled_from([None, "[1]"]),
        "command": st.just("true"),
        "armed": st.booleans(),
        "delay_seconds": st.sampled_from([0, 3, 11]),
        "needs": st.lists(
            st.builds(Need, task_id=ids, output=outputs), max_size=2, unique=True
        ),
        "continuations": st.lists(ids, max_size=2, unique=True).map(tuple),
        "max_retries": st.sampled_from([1, 2]),
        "retry": st.sampled_from([FixedDelays(seconds=(3,)), Exponential(first_seconds=4)]),
        "max_lapses": st.sampled_from([0, 1]),
        "timeout_seconds": st.just(11.0),
        "estimated_runtime_seconds": st.sampled_from([5.0, 50.0]),
        "resources": resources,
        "unique_key": st.sampled_from(["k", "m"]),
        "limit_key": st.sampled_from(["l", "m"]),
        "name": st.sampled_from(["n", "o"]),
        "tag": st.just("t"),
    },
)
tasks = st.builds(lambda task_id, given: new_task(task_id, **given), ids, fields)


# Of tasks that say the same: what those that are ready at once can say.
_TIES = ("needs", "continuations", "unique_key", "name", "armed", "spec")


@st.composite
def alike(draw: Any, ids: list[str]) -> AlikeTasks:
    """Tasks with these ids, which are new, that say the same but for their specs."""
    said = {name: one for name, one in draw(fields).items() if name not in _TIES}
    specs = draw(st.lists(st.sampled_from(["null", '"\\\\ü"', "[1]"]), min_size=3, max_size=3))
    has_specs = "command" not in said or draw(st.booleans())
    return AlikeTasks(new_task(ids[0], **said, spec=None), ids, specs if has_specs else None)


@st.composite
def graphs(draw: Any) -> list[Any]:
    """A few tasks that may all be accepted: each needs only earlier ones."""
    found: list[Any] = []
    for task_id in IDS[: draw(st.integers(3, 6))]:
        given = draw(fields)
        earlier = [task.id for task in found]
        needs = (
            draw(st.lists(st.sampled_from(earlier), max_size=2, unique=True)) if found else []
        )
        given["needs"] = [Need(task_id=name, output=draw(outputs)) for name in needs]
        for name in ("continuations", "unique_key", "name"):
            given.pop(name, None)
        found.append(new_task(task_id, **given))
    return found


limits = st.lists(
    st.builds(
        Limit,
        key=st.sampled_from(["", "*", "l"]),
        concurrency_max=st.sampled_from([None, 0, 1, 2]),
        rate_max=st.sampled_from([None, 1, 3]),
        rate_seconds=st.sampled_from([1.0, 10.0]),
    ),
    max_size=2,
    unique_by=lambda limit: limit.key,
)
settings = st.builds(
    lambda rules, **given: QueueSettings(limits=tuple(rules), **given),
    rules=limits,
    aging=st.booleans(),
    fair=st.booleans(),
    fence_kill=st.booleans(),
    lease_seconds=st.sampled_from([3.0, 9.0, 20.0]),
)
amendments = st.builds(
    Amendment,
    name=st.sampled_from([None, "n"]),
    command=st.sampled_from([None, "false"]),
    max_retries=st.sampled_from([None, 0, -1]),
    resources=st.none() | resources,
)
filters = st.builds(
    TaskFilter,
    statuses=st.none() | st.lists(st.sampled_from(Status), max_size=3, unique=True).map(tuple),
    queue=st.none() | queues,
    tag=st.sampled_from([None, None, "t"]),
    name=st.sampled_from([None, None, "n"]),
    estimated_runtime_seconds_max=st.sampled_from([None, None, 20.0]),
    memory_bytes_min=st.sampled_from([None, None, 1]),
)
ends = st.builds(
    lambda ending, exit_status: End(
        ending=Ending(ending),
        error=BROKEN if ending in ("failed", "aborted") else None,
        exit_status=exit_status,
    ),
    st.sampled_from(["succeeded", "succeeded", "failed", "failed", "aborted", "yielded"]),
    st.sampled_from([None, 3]),
)
