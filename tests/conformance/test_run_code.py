"""Code of a run's definition as tasks: stored once, no part of the graph, free of its end."""

import pytest

from tests.conformance.run_steps import Driver
from tidewheel.core.operator.definition import CODE, FUNCTION, HANDLER, code_queue
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import TaskError
from tidewheel.errors import NotFound

WRONG = TaskError(code="exit", description="exit status 3")


def queue_of(driver):
    return code_queue(driver.run.name, driver.run.queue)


def handler(driver, node="handler-1-0-0", **fields):
    given = {"point": CODE, "queue": queue_of(driver), "tag": HANDLER}
    return driver.task(node, **given | fields)


def poll(driver, number=1):
    return handler(driver, "function-f", submit=number, tag=FUNCTION)


def submits(driver, *tasks):
    driver.store.submit_code(driver.run.number, list(tasks))
    return [task.id for task in tasks]


def takes(driver, count=9):
    return driver.store.take(count, queue=queue_of(driver))


def test_a_handler_that_is_submitted_again_is_no_second_task(store):
    driver = Driver.of(store)
    [task_id] = submits(driver, handler(driver))
    submits(driver, handler(driver))
    [held] = takes(driver)
    assert (held.id, held.task.run) == (task_id, driver.run.number)
    submits(driver, handler(driver))
    store.finish(held)
    submits(driver, handler(driver))
    assert takes(driver) == [] and store.verify() == []


@pytest.mark.parametrize("queue", ["", "both"])
def test_code_runs_after_the_end_of_its_run_and_is_given_back_as_any_task(store, clock, queue):
    driver = Driver.of(store, queue=queue)
    submits(driver, handler(driver))
    driver.write(status="completed", ends=True)
    submits(driver, handler(driver, "handler-2-0-0"))
    yielded, _ = takes(driver)
    store.finish(yielded, ending="yielded")
    clock.advance(100.0)
    store.lapse()
    again = takes(driver)
    assert {one.task.attempt for one in again} == {2} and len(again) == 2
    assert store.hold(submits(driver, handler(driver, "handler-3-0-0"))[0]).task.attempt == 1
    assert store.verify() == []


def test_code_is_no_submission_of_the_graph_and_goes_with_its_run(store):
    driver = Driver.of(store)
    [job] = driver.submit("a")
    [task_id] = submits(driver, handler(driver))
    number = driver.run.number
    assert [one.task_id for one in store.submissions(number)] == [job]
    assert [one.task_id for one in store.run_attempts(number, 9)] == [job]
    [found] = store.submissions(number, point=CODE, name="handler-1-0-0")
    assert found.task_id == task_id  # so its job is known as one of the run
    driver.write(status="stopped", ends=True)
    store.delete_run(number)
    assert store.listed() == [] and store.verify() == []
    with pytest.raises(NotFound):
        submits(driver, handler(driver))


def test_of_code_a_run_hears_only_that_a_handler_failed(store):
    driver = Driver.of(store)
    submits(driver, handler(driver), handler(driver, "handler-1-0-1"), poll(driver))
    polled, fine, wrong = sorted(takes(driver), key=lambda one: one.id)
    for held in (fine, wrong, polled):
        store.tell(held, started=True)
    store.finish(fine)
    store.finish(wrong, ending="failed", error=WRONG)
    store.finish(polled, ending="failed", error=WRONG)
    [heard] = driver.inbox()
    assert (heard.task_id, heard.status, heard.error) == (wrong.id, "failed", "exit status 3")


def test_the_end_of_a_call_is_read_once_and_leaves_nothing(store):
    driver = Driver.of(store)
    first, second, third = submits(driver, poll(driver), poll(driver, 2), poll(driver, 3))
    number, known = driver.run.number, [first, second, third]
    assert store.take_code(number, known) == []
    by_id = {held.id: held for held in takes(driver)}
    store.finish(by_id[first], values='{"satisfied": true}')
    store.finish(by_id[second], ending="failed", error=WRONG)
    ends = {one.task_id: one for one in store.take_code(number, known)}
    assert ends[first][1:] == (Status.SUCCEEDED, '{"satisfied": true}', None)
    assert ends[second][1:] == (Status.FAILED, None, "exit status 3")
    assert store.take_code(number, [first, second]) == []
    assert store.listed() == [third]
    assert store.take_code(number + 1, [third], unended=True) == []  # it is another's
    assert [one.task_id for one in store.take_code(number, [third], unended=True)] == [third]
    assert store.listed() == [] and store.verify() == []
