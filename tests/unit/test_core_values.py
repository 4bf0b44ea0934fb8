"""What passes between the parts: values that nobody can change, and their defaults."""

import dataclasses
import importlib
import pkgutil

import pytest

from tidewheel.core import queue
from tidewheel.core.queue.requests import (
    ANY_RESOURCES,
    ClaimRequest,
    KeysetPage,
    QueueSettings,
    TaskFilter,
    page_count,
)
from tidewheel.core.queue.resources import (
    CPU_MAX,
    GPU_MAX,
    MEMORY_BYTES_MAX,
    Resources,
    fits,
)
from tidewheel.core.queue.task import NewTask
from tidewheel.errors import BadSetting


def values():
    """Every dataclass of the core."""
    for module in pkgutil.iter_modules(queue.__path__):
        for thing in vars(importlib.import_module(f"{queue.__name__}.{module.name}")).values():
            if dataclasses.is_dataclass(thing):
                yield thing


def test_every_value_of_the_core_is_frozen_small_and_named():
    found = set(values())
    assert len(found) > 30
    loose = [
        value.__name__
        for value in found
        if not (value.__dataclass_params__.frozen and hasattr(value, "__slots__"))
        or not all(field.kw_only for field in dataclasses.fields(value))
    ]
    assert loose == []


@pytest.mark.req("R002-23")
def test_a_task_has_the_defaults_of_the_sources():
    task = NewTask(id="a", queue="q")
    assert (task.priority, task.max_retries, task.max_lapses) == (50, 0, 5)
    assert (task.delay_seconds, task.timeout_seconds, task.max_termination_seconds) == (
        0,
        None,
        10,
    )
    assert task.armed
    assert task.resources == Resources()


@pytest.mark.req("R002-39")
def test_a_lease_lasts_ten_seconds_unless_somebody_says_otherwise():
    assert QueueSettings().lease_seconds == 10
    assert ClaimRequest(queue="q", worker="worker-1").lease_seconds is None


@pytest.mark.req("R002-29")
def test_a_page_holds_a_hundred_tasks_of_any_kind():
    assert KeysetPage() == KeysetPage(count=100, before=None)
    assert set(dataclasses.asdict(TaskFilter()).values()) == {None}


def test_a_worker_that_names_no_bounds_takes_whatever_can_be_asked_for():
    most = Resources(cpu=CPU_MAX, memory_bytes=MEMORY_BYTES_MAX, gpu=GPU_MAX)
    assert fits(most, ANY_RESOURCES)


def test_one_call_asks_for_one_to_ten_thousand():
    assert [page_count(count) for count in (1, 100, 10_000)] == [1, 100, 10_000]
    for count in (0, -1, 10_001):
        with pytest.raises(BadSetting, match=f"count is {count}; expected 1 to 10000"):
            page_count(count)
