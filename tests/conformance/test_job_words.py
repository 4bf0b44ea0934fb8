"""What jobs say with a token of their own, beside what their worker says for them."""

import pytest

from tests.conformance.door import messages
from tidewheel.core.queue.access import JobWords, KeptAnswer
from tidewheel.core.queue.task import Need
from tidewheel.errors import LeaseLost, NotFound, PayloadTooLarge, Refused


def words(held, text="", key=None, **more):
    kept = None
    if key is not None:
        kept = KeptAnswer(token=1, key=key, fingerprint="f", status=200, body="{}")
    return JobWords(holder=held.holder, text=text, kept=kept, **more)


def held_task(store, task_id):
    store.put(task_id)
    return store.hold(task_id)


def said(store, task_id):
    return [(one.text, one.output) for one in store.outputs(task_id)]


def test_what_a_job_says_by_itself_keeps_its_order_and_disturbs_no_worker(store):
    held = held_task(store, "a")
    store.hear_job(words(held, "by token 1"))
    store.tell(held, messages=messages("by worker 1"))
    store.hear_job(words(held, "by token 2", output="half"))
    store.tell(held, messages=messages("by worker 1", "by worker 2"))
    texts = [text for text, _ in said(store, "a")]
    assert [one for one in texts if "token" in one] == ["by token 1", "by token 2"]
    assert [one for one in texts if "worker" in one] == ["by worker 1", "by worker 2"]
    assert len(texts) == 4
    store.finish(held)
    assert store.verify() == []


def test_the_same_words_with_the_same_key_are_stored_once(store):
    """S7."""
    held = held_task(store, "a")
    for _ in range(3):
        store.hear_job(words(held, "once", key="k"))
    store.hear_job(words(held, "another", key="l"))
    store.hear_job(words(held, "twice"))
    store.hear_job(words(held, "twice"))
    assert [text for text, _ in said(store, "a")] == ["once", "another", "twice", "twice"]
    assert store.kept_answer(1, "k") is not None


def test_progress_is_told_without_extending_the_lease(store):
    held = held_task(store, "a")
    before = store.get("a").deadline_at
    store.hear_job(words(held, progress=0.5))
    after = store.get("a")
    assert (after.progress, after.deadline_at) == (0.5, before)
    assert said(store, "a") == []


@pytest.mark.req("R003-16")
def test_an_output_that_a_job_makes_by_itself_releases_who_waits_for_it(store):
    store.put("parent")
    store.put("child", needs=[Need(task_id="parent", output="half")])
    held = store.hold("parent")
    assert store.status("child") == "waiting"
    store.hear_job(words(held, output="half"))
    assert store.status("child") == "ready"


def test_a_job_without_its_lease_is_not_heard(store):
    """S6: dead at the end of the lease."""
    held = held_task(store, "a")
    for wrong in (held.by("worker-999"), held.again(2)):
        with pytest.raises(LeaseLost):
            store.hear_job(words(wrong, "evil"))
    with pytest.raises(NotFound):
        store.hear_job(words(held.rename("nobody", held.worker, 1), "evil"))
    store.finish(held)
    with pytest.raises(Refused):
        store.hear_job(words(held, "late", key="late"))
    assert said(store, "a") == []
    assert store.kept_answer(1, "late") is None


def test_what_is_too_long_is_refused(store):
    held = held_task(store, "a")
    with pytest.raises(PayloadTooLarge):
        store.hear_job(words(held, "x" * 10_000_000))
