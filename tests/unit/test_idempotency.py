"""What a digest is made of."""

from dataclasses import dataclass, field, fields, make_dataclass, replace

import pytest

from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.retry import Exponential, FixedDelays
from tidewheel.core.queue.task import Need, NewTask, TaskId
from tidewheel.store.rows import digest_of

TASK = NewTask(
    id=TaskId('a,"queue":"x"'), queue="q", command="true", needs=(Need(task_id=TaskId("p")),)
)


def test_a_digest_is_that_of_every_earlier_version():
    """A task that is submitted again after an upgrade is the same task."""
    assert digest_of(TASK) == "187da511e48eef3874214ffeee3ca65c"


def test_neither_the_id_nor_the_run_is_part_of_a_digest():
    assert digest_of(replace(TASK, id=TaskId("b"), run=7)) == digest_of(TASK)
    assert digest_of(replace(TASK, queue="other")) != digest_of(TASK)


PLENTY = replace(
    TASK,
    name="n",
    delay_seconds=5,
    retry=Exponential(factor=3),
    resources=Resources(cpu=2, labels=frozenset({"b", "a", "c"})),
    tag="t",
)
WIDE = replace(PLENTY, retry=FixedDelays(seconds=(1, 2)), resources=Resources(nodes=3))


def test_digests_that_are_stored_are_found_again():
    assert digest_of(PLENTY) == "7334784e5e827cac0f9939c099e9a4af"
    assert digest_of(WIDE) == "6bf489fcd3e97af8f7bfb83cb4b2e88d"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterResources(Resources):
    """Of a version that knows one thing more."""

    quantum_bits: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterTask(NewTask):
    """Of a version that knows two fields more."""

    colour: str | None = None
    colours: frozenset[str] = field(default_factory=frozenset)


def of_later(task: NewTask, **said: object) -> LaterTask:
    asked = {one.name: getattr(task.resources, one.name) for one in fields(task.resources)}
    body = {one.name: getattr(task, one.name) for one in fields(task)}
    return LaterTask(**body | {"resources": LaterResources(**asked)} | said)


@pytest.mark.parametrize("task", [TASK, PLENTY, WIDE])
def test_a_version_with_a_field_more_has_the_same_digests(task):
    assert digest_of(of_later(task)) == digest_of(task)


def test_what_is_said_in_a_new_field_is_part_of_the_digest():
    blue = digest_of(of_later(TASK, colour="blue"))
    assert blue not in (digest_of(TASK), digest_of(of_later(TASK, colour="red")))
    one, other = ({"a", "b", "c"}, {"c", "b", "a"})
    assert digest_of(of_later(TASK, colours=frozenset(one))) == digest_of(
        of_later(TASK, colours=frozenset(other))
    )


def _like(one):
    """A field with the same default, or none."""
    return field(default=one.default, default_factory=one.default_factory)


@pytest.mark.parametrize("task", [TASK, replace(PLENTY, tag=None), replace(WIDE, tag=None)])
def test_a_version_with_a_field_less_has_the_same_digests(task):
    names = [one for one in fields(task) if one.name != "tag"]
    less = make_dataclass(
        "EarlierTask",
        [(one.name, object, _like(one)) for one in names],
        frozen=True,
        slots=True,
        kw_only=True,
    )
    assert digest_of(less(**{one.name: getattr(task, one.name) for one in names})) == digest_of(
        task
    )
