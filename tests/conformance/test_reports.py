"""What workers say: how an attempt ends, what it printed, made and used."""

from dataclasses import replace

import pytest

from tests.conformance.door import BROKEN, messages
from tidewheel.core.queue.requests import End, Ending, JobMessage, Report, UsageSample
from tidewheel.core.queue.retry import Exponential, FixedDelays
from tidewheel.core.queue.submission import SubmitLimits
from tidewheel.core.queue.task import TaskError
from tidewheel.errors import LeaseLost, MessagesMissing, NotFound, PayloadTooLarge, WrongStatus


@pytest.mark.req("R002-48", "R002-49", "R002-20", "R002-21", "R003-48")
def test_success_ends_a_task_with_full_progress_and_its_metrics(store, clock):
    store.put("a")
    held = store.hold("a")
    store.beat(held, 0.4)
    clock.advance(5)
    assert store.finish(held, exit_status=0, metrics='{"rows": [1, 2.50]}') == "succeeded"
    view = store.get("a")
    assert (view.status, view.progress, view.errors) == ("succeeded", 1.0, ())
    assert (view.owner, view.deadline_at, view.updated_at) == (held.worker, None, clock.now)
    (attempt,) = store.attempts("a")
    assert (attempt.exit_status, attempt.metrics) == (0, '{"rows": [1, 2.50]}')
    assert (attempt.ended_at, attempt.ended_by, attempt.error) == (clock.now, "succeed", None)


@pytest.mark.req("R002-48")
def test_each_success_of_one_report_keeps_what_was_said_of_it_and_of_no_other(store, clock):
    ends = {
        'q"uo\\te': (0, None, 3.0),
        "NULL": (None, '{"a": "\\\\ \\" , {}"}', None),
        "all": (7, '"NULL"', 0.5),
        "none": (None, None, None),
    }
    worker = store.hire()
    store.put(*ends)
    held = {name: store.hold(name, worker) for name in ends}
    clock.advance(5)
    reports = [
        Report(
            holder=held[name].holder,
            started=ago is not None,
            started_seconds_ago=ago or 0.0,
            end=End(ending=Ending.SUCCEEDED, exit_status=status, metrics=metrics),
        )
        for name, (status, metrics, ago) in ends.items()
    ]
    assert [answer.refused for answer in store.report(reports)] == [None] * 4
    for name, (status, metrics, ago) in ends.items():
        (attempt,) = store.attempts(name)
        started_at = None if ago is None else clock.now - ago
        assert (attempt.exit_status, attempt.metrics) == (status, metrics), name
        assert (attempt.started_at, attempt.ended_by) == (started_at, "succeed"), name


@pytest.mark.req("R002-50", "R002-51", "R002-19")
def test_an_abort_says_why_and_is_never_retried(store):
    store.put("a", max_retries=9)
    held = store.hold("a")
    store.beat(held, 0.4)
    error = TaskError(code="superseded", args='{"by": "Ω"}', description="a new one came")
    assert store.finish(held, "aborted", error=error) == "failed"
    view = store.get("a")
    assert (view.status, view.errors, view.progress) == ("failed", (error,), 0.4)
    assert (view.owner, view.deadline_at) == (held.worker, None)
    assert store.taken(9) == []
    assert store.signals("a")[-1] == "abort"


@pytest.mark.req("R002-19", "R003-70")
def test_errors_are_shown_on_failed_tasks_only(store):
    store.put("a", max_retries=1)
    store.finish(store.hold("a"), "failed")
    assert store.get("a").errors == ()
    assert store.attempts("a")[0].error == BROKEN
    held = store.hold("a")
    assert store.get("a").errors == ()
    store.finish(held)
    assert store.get("a").errors == ()
    store.put("b")
    store.run_through("b", ending="failed")
    assert store.get("b").errors == (BROKEN,)


@pytest.mark.req("R003-10", "R003-70", "R003-71", "R003-74")
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_n_retries_mean_n_and_zero_means_never(store, retries):
    store.put("a", max_retries=retries)
    statuses = [store.finish(store.hold("a"), "failed") for _ in range(retries + 1)]
    assert statuses == ["ready"] * retries + ["failed"]
    view = store.get("a")
    assert (view.failures, view.attempt) == (retries + 1, retries + 1)
    assert store.signals("a").count("retry") == retries


def test_a_retry_waits_for_its_delay(store, clock):
    store.put("a", max_retries=9, retry=FixedDelays(seconds=(30, 90)))
    for seconds in (30, 90, 90):
        assert store.finish(store.take()[0], "failed") == "ready"
        assert store.get("a").due_at == clock.now + seconds
        clock.advance(seconds - 1)
        assert store.taken() == []
        clock.advance(1)
    assert store.taken() == ["a"]
    assert store.get("a").due_at is None


def test_a_retry_with_jitter_asks_the_stores_dice(world, clock):
    store = world.open(chance=lambda: 0.25)
    store.put("a", max_retries=1, retry=Exponential(first_seconds=100, jitter=1.0))
    store.finish(store.hold("a"), "failed")
    assert store.get("a").due_at == clock.now + 75


@pytest.mark.req("R003-52", "R003-53", "R003-56", "R003-58")
def test_each_attempt_has_one_record_and_they_are_in_order(store, clock):
    store.put("a", max_retries=1)
    start = clock.now
    first = store.hold("a")
    clock.advance(1)
    store.tell(first, started=True)
    clock.advance(1)
    store.finish(first, "failed", exit_status=3)
    second = store.hold("a")
    clock.advance(20)
    store.lapse()
    third = store.hold("a")
    done, lost, live = store.attempts("a")
    assert (done.attempt, done.worker, done.exit_status) == (1, first.worker, 3)
    assert (done.claimed_at, done.started_at, done.ended_at) == (start, start + 1, start + 2)
    assert (done.ended_by, done.error) == ("retry", BROKEN)
    assert (lost.attempt, lost.worker, lost.ended_by) == (2, second.worker, "lapse")
    assert (lost.started_at, lost.ended_at, lost.exit_status) == (None, clock.now, None)
    assert (live.attempt, live.worker, live.claimed_at) == (3, third.worker, clock.now)
    assert (live.started_at, live.ended_at, live.ended_by) == (None, None, None)


@pytest.mark.req("R003-35", "R003-56")
def test_the_start_is_reported_after_the_claim_and_the_first_time_counts(store, clock):
    store.put("a")
    held = store.hold("a")
    assert store.attempts("a")[0].started_at is None
    clock.advance(2)
    assert store.tell(held, started=True) == "running"
    first = clock.now
    clock.advance(2)
    store.tell(held, started=True)
    assert store.attempts("a")[0].started_at == first
    store.finish(held)
    assert store.attempts("a")[0].started_at == first


@pytest.mark.req("R003-56")
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"messages": messages("hello")},
        {"end": End(ending=Ending.SUCCEEDED)},
        {"end": End(ending=Ending.FAILED, error=BROKEN)},
    ],
    ids=["alone", "with a message", "with a success", "with a failure"],
)
def test_a_start_that_is_told_late_has_its_own_time_and_none_before_the_claim(
    store, clock, more
):
    for name, ago, seen in [("a", 0.5, 1.5), ("b", 9.0, 0.0)]:
        store.put(name)
        held = store.hold(name)
        claimed_at = clock.now
        clock.advance(2)
        store.tell(held, started=True, started_seconds_ago=ago, **more)
        [attempt] = store.attempts(name)
        assert attempt.started_at == pytest.approx(claimed_at + seen)


@pytest.mark.req("R003-56")
def test_nothing_of_an_ended_attempt_can_be_written_again(store):
    store.put("a")
    held = store.hold("a")
    store.finish(held, "failed", exit_status=1)
    before = store.everything()
    for again in ({"started": True}, {"usage": (UsageSample(memory_bytes=1),)}):
        with pytest.raises(WrongStatus):
            store.tell(held, **again)
    with pytest.raises(WrongStatus) as refused:
        store.finish(held, "succeeded", exit_status=0)
    assert "the status is failed" in str(refused.value)
    assert store.everything() == before


def test_messages_are_numbered_and_kept_in_order_across_attempts(store, clock):
    store.put("a", max_retries=1)
    held = store.hold("a")
    store.tell(held, messages=messages("one", "two"))
    clock.advance(1)
    store.tell(held, messages=messages("three\n\tü", first=3, output="half"))
    store.finish(held, "failed")
    store.tell(store.hold("a"), messages=messages("again"))
    seen = [(o.attempt, o.number, o.text, o.output) for o in store.outputs("a")]
    assert seen == [
        (1, 1, "one", None),
        (1, 2, "two", None),
        (1, 3, "three\n\tü", "half"),
        (2, 1, "again", None),
    ]
    assert store.outputs("a")[2].at == clock.now


def test_messages_that_come_twice_are_stored_once(store):
    store.put("a")
    held = store.hold("a")
    store.tell(held, messages=messages("one", "two"))
    store.tell(held, messages=messages("one", "two"))
    store.tell(held, messages=messages("two", "three", first=2))
    assert [output.text for output in store.outputs("a")] == ["one", "two", "three"]


def test_an_end_waits_for_all_earlier_messages(store):
    store.put("a")
    held = store.hold("a")
    store.tell(held, messages=messages("one"))
    end = End(ending=Ending.SUCCEEDED)
    before = store.everything()
    late = (JobMessage(number=3, text="three"),)
    with pytest.raises(MessagesMissing) as refused:
        store.tell(held, messages=late, end=end, started=True, usage=(UsageSample(),))
    assert (refused.value.seen, refused.value.got) == (1, 3)
    assert str(refused.value) == (
        "task 'a': message 3 arrived after message 1; send message 2 first"
    )
    assert store.everything() == before
    gap = (JobMessage(number=2, text="two"), JobMessage(number=4, text="four"))
    with pytest.raises(MessagesMissing) as refused:
        store.tell(held, messages=gap)
    assert (refused.value.seen, refused.value.got) == (2, 4)
    assert store.everything() == before
    assert store.tell(held, messages=messages("two", "three", first=2), end=end) == "succeeded"
    assert len(store.outputs("a")) == 3


@pytest.mark.req("R003-55", "R003-57")
def test_usage_is_a_series_and_may_come_at_any_rate(store, clock):
    store.put("a", max_retries=1)
    held = store.hold("a")
    full = UsageSample(
        memory_bytes=2**40, cpu_percent=123.5, gpu_percent=0.5, gpu_memory_bytes=7
    )
    store.tell(held, usage=(full, UsageSample(memory_bytes=5)))
    clock.advance(0.001)
    store.tell(held, usage=tuple(UsageSample(cpu_percent=float(n)) for n in range(50)))
    store.finish(held, "failed")
    store.tell(store.hold("a"), usage=(UsageSample(gpu_percent=1.0),))
    series = store.usage("a")
    assert [point.sample for point in series[:2]] == [full, UsageSample(memory_bytes=5)]
    assert [point.sample.cpu_percent for point in series[2:52]] == list(map(float, range(50)))
    assert (series[0].at, series[2].at) == (clock.now - 0.001, clock.now)
    assert [point.attempt for point in series] == [1] * 52 + [2]


def test_all_that_a_success_says_is_stored_whether_or_not_others_depend_on_it(store, clock):
    store.put("alone", "parent")
    store.put("child", needs=["parent"])
    held = [store.hold("alone"), store.hold("parent")]
    for one in held:
        store.beat(one, 0.4)
    clock.advance(5)
    end = End(
        ending=Ending.SUCCEEDED,
        exit_status=0,
        metrics='{"spelled": "\\u0000", "raw": "\0 \ud83c"}',
        values=' {"beams": 4}',
    )
    used = (UsageSample(memory_bytes=7), UsageSample(cpu_percent=0.5))
    reports = [Report(holder=one.holder, started=True, usage=used, end=end) for one in held]
    assert [one.status for one in store.report(reports)] == ["succeeded", "succeeded"]
    alone, parent = (
        [
            [replace(one, worker="") for one in store.attempts(task_id)],
            [replace(one, seq=0, worker=None) for one in store.history(task_id)],
            store.usage(task_id),
            store.values_of([task_id])[task_id],
        ]
        for task_id in ("alone", "parent")
    )
    assert alone == parent
    (attempt,) = store.attempts("alone")
    assert (attempt.exit_status, attempt.started_at) == (0, clock.now)
    assert attempt.metrics.startswith(
        '{"spelled": "\\u0000", "raw": "\N{REPLACEMENT CHARACTER} '
    )
    assert [point.sample for point in store.usage("alone")] == list(used)
    assert store.values_of(["alone"]) == {"alone": '{"beams": 4}'}
    assert (store.get("alone").progress, store.get("alone").due_at) == (1.0, None)


def test_reports_are_answered_one_by_one_and_a_refused_one_stops_no_other(store):
    store.put("a", "b", "c")
    worker = store.hire()
    a, b, c = store.take(3, worker=worker)
    done = End(ending=Ending.SUCCEEDED)
    answers = store.report(
        [
            Report(holder=a.holder, end=done),
            Report(holder=b.by("worker-99").holder, end=done),
            Report(holder=a.holder, end=done),
            Report(holder=c.again(7).holder, messages=messages("x")),
            Report(holder=c.holder, messages=messages("one")),
            Report(holder=c.holder, messages=messages("two", first=2), end=done),
            Report(holder=b.holder, started=True),
        ]
    )
    assert [answer.task_id for answer in answers] == [*"abacccb"]
    assert [answer.status for answer in answers] == [
        "succeeded",
        None,
        None,
        None,
        "running",
        "succeeded",
        "running",
    ]
    kinds = [type(answer.refused) for answer in answers]
    none = type(None)
    assert kinds == [none, LeaseLost, WrongStatus, LeaseLost, none, none, none]
    assert [output.text for output in store.outputs("c")] == ["one", "two"]
    assert store.report([]) == []


def test_a_report_for_no_task_is_refused(store):
    store.put("a")
    held = store.hold("a")
    store.finish(held)
    store.delete(["a"])
    with pytest.raises(NotFound) as refused:
        store.finish(held)
    assert str(refused.value) == "there is no task 'a' in this store"


def test_a_message_may_hold_any_text_that_a_job_can_print(store):
    """Also half a character and a NUL, which no database keeps: what is left is readable."""
    store.put("a")
    held = store.hold("a")
    odd = messages("emoji 🌊 \u202e", "esc \x1b[1m", "nul \0 end", "half \ud83c end")
    assert store.tell(held, messages=odd, end=End(ending=Ending.SUCCEEDED)) == "succeeded"
    texts = [output.text for output in store.outputs("a")]
    assert texts[:2] == ["emoji 🌊 \u202e", "esc \x1b[1m"]
    assert all(text.endswith(" end") for text in texts[2:])


def test_a_message_over_the_limit_is_refused_and_stops_no_other_report(world):
    store = world.open(SubmitLimits(message_bytes_max=10))
    store.put("a", "b")
    one, other = store.hold("a"), store.hold("b")
    reported = store.report(
        [
            Report(holder=one.holder, messages=messages("short", "x" * 11)),
            Report(holder=other.holder, messages=messages("é" * 5)),
        ]
    )
    assert isinstance(reported[0].refused, PayloadTooLarge)
    assert "message 2 of task 'a' has 11 bytes" in str(reported[0].refused)
    assert reported[1].refused is None
    assert (store.outputs("a"), len(store.outputs("b"))) == ([], 1)
