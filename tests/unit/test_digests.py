"""What a digest is made of."""

from dataclasses import replace

from tidewheel.core.tasks.task import Need, NewTask, TaskId
from tidewheel.store.digests import digest_of

TASK = NewTask(
    id=TaskId('a,"queue":"x"'), queue="q", command="true", needs=(Need(task_id=TaskId("p")),)
)


def test_a_digest_is_that_of_every_earlier_version():
    """A task that is submitted again after an upgrade is the same task."""
    assert digest_of(TASK) == "187da511e48eef3874214ffeee3ca65c"


def test_neither_the_id_nor_the_run_is_part_of_a_digest():
    assert digest_of(replace(TASK, id=TaskId("b"), run=7)) == digest_of(TASK)
    assert digest_of(replace(TASK, queue="other")) != digest_of(TASK)
