"""Handlers: how their ends are told, and what they may ask of the job they are in."""

import asyncio
import json
import re
import sys
import threading
from contextvars import ContextVar
from functools import partial
from pathlib import Path

import pytest

from tests.kit.runner_conformance import (
    DEADLINE_SECONDS,
    LONG_GRACE_SECONDS,
    RecordedReports,
    assigned,
    claimed,
)
from tidewheel.core.queue.requests import Ending
from tidewheel.errors import BadSetting, BadValues, PayloadTooLarge, Refused
from tidewheel.runners.python.runner import Abort, Handlers, PythonRunner

HOME = Path("/nonexistent/never made")


def run_handler(function, spec=None, home=HOME):
    """Call one handler as a task; the answer is its end and what it said."""
    handlers = Handlers()
    handlers.register("it")(function)

    async def scenario():
        runner, reports = PythonRunner(handlers), RecordedReports()
        task = claimed(handler="it", spec=spec)
        job = await runner.start(assigned(task, home), reports)
        async with asyncio.timeout(DEADLINE_SECONDS):
            end = await job.wait()
        runner.stop()
        return end, reports

    return asyncio.run(scenario())


def deeply_nested(levels):
    """An object in an object in an object."""
    found = {}
    for _ in range(levels):
        found = {"a": found}
    return found


def both_ways(test):
    """Run a test with a plain function and with a coroutine."""

    def as_coroutine(function):
        async def coroutine(spec, job):
            return function(spec, job)

        return coroutine

    return pytest.mark.parametrize(
        "way", [lambda function: function, as_coroutine], ids=["function", "coroutine"]
    )(test)


@both_ways
@pytest.mark.req("R002-49")
def test_what_a_handler_returns_is_kept_as_metrics(way):
    end, reports = run_handler(way(lambda spec, _job: {"doubled": spec["x"] * 2}), '{"x": 21}')
    assert end.ending is Ending.SUCCEEDED
    assert json.loads(end.metrics) == {"doubled": 42}
    assert reports.starts == 1


@both_ways
def test_a_handler_that_returns_nothing_has_no_metrics(way):
    end, _ = run_handler(way(lambda spec, _job: spec))
    assert (end.ending, end.metrics, end.error) == (Ending.SUCCEEDED, None, None)


@both_ways
@pytest.mark.parametrize("result", [object(), {1, 2}, float("nan"), "x" * 70_000])
def test_a_result_that_cannot_be_kept_is_no_reason_to_do_the_work_again(way, result):
    end, _ = run_handler(way(lambda _spec, _job: result))
    assert (end.ending, end.error.code) == (Ending.ABORTED, "result")


@both_ways
@pytest.mark.parametrize(
    ("result", "seen"),
    [
        ({"a": float("inf")}, "expected strings, finite numbers"),
        ((n for n in "ab"), "passed on: Object of type generator is not JSON serializable"),
        ({"a": "\ud800"}, "half of a surrogate pair"),
        ({"a": 2**64}, "more than 64 bits"),
        ({"a": "x" * 65_537}, "at most 65536"),
        (deeply_nested(101), "nested too deeply"),
    ],
)
def test_a_result_that_no_program_could_read_is_told(way, result, seen):
    end, _ = run_handler(way(lambda _spec, _job: result))
    assert (end.ending, end.error.code) == (Ending.ABORTED, "result")
    assert seen in end.error.description


@both_ways
def test_what_a_handler_tells_and_returns_are_its_values_and_the_return_counts_more(way):
    def telling(_spec, job):
        files = ["x"]
        job.value("files", files)
        files.append("later, and not meant")
        job.value("folder", "old")
        return {"folder": "new"}

    end, _ = run_handler(way(telling))
    assert json.loads(end.values) == {"files": ["x"], "folder": "new"}
    end, _ = run_handler(way(lambda _spec, job: job.value("n", 1)))
    assert (end.values, end.metrics) == ('{"n": 1}', None)
    end, _ = run_handler(way(lambda _spec, _job: [1, 2]))
    assert (end.values, end.metrics) == ('{"return": [1, 2]}', "[1, 2]")


@both_ways
@pytest.mark.parametrize("value", [object(), float("nan"), "\ud800", "x" * 65_537, 2**64])
def test_a_value_that_cannot_be_told_is_refused_at_once_and_the_others_stay(way, value):
    def telling(_spec, job):
        job.value("good", 1)
        with pytest.raises(BadValues):
            job.value("bad", value)
        with pytest.raises(BadValues):
            job.value("", 1)

    end, _ = run_handler(way(telling))
    assert end.values == '{"good": 1}'


@both_ways
def test_a_handler_that_fails_hands_on_nothing(way):
    def failing(_spec, job):
        job.value("n", 1)
        raise ValueError("no")

    end, _ = run_handler(way(failing))
    assert (end.ending, end.values) == (Ending.FAILED, None)


@both_ways
def test_a_message_that_is_too_long_is_a_typed_error_that_a_handler_may_catch(way):
    def careful(_spec, job):
        with pytest.raises(PayloadTooLarge, match="has 65537 bytes; at most 65536"):
            job.message("x" * 65_537)
        with pytest.raises(PayloadTooLarge):
            job.output("plotted", "é" * 40_000)
        job.message("x" * 65_536)

    end, reports = run_handler(way(careful))
    assert end.ending is Ending.SUCCEEDED
    assert [len(text) for text, _ in reports.messages] == [65_536]
    end, _ = run_handler(way(lambda _spec, job: job.message("x" * 65_537)))
    assert (end.ending, end.error.code) == (Ending.FAILED, "PayloadTooLarge")


@pytest.mark.slow
@both_ways
def test_a_handler_cannot_speak_without_end(way):
    def chatty(_spec, job):
        for _ in range(10_000):
            job.message("again")
        with pytest.raises(Refused, match="10000 messages"):
            job.message("and again")

    end, reports = run_handler(way(chatty))
    assert (end.ending, len(reports.messages)) == (Ending.SUCCEEDED, 10_000)


@both_ways
def test_an_exception_is_told_by_class_text_and_traceback(way):
    def handler(_spec, _job):
        raise FileNotFoundError("no such picture")

    end, _ = run_handler(way(handler))
    assert (end.ending, end.error.code) == (Ending.FAILED, "FileNotFoundError")
    assert end.error.description == "no such picture"
    assert "raise FileNotFoundError" in json.loads(end.error.args)["traceback"]


@both_ways
@pytest.mark.req("R002-50", "R002-51")
def test_abort_says_that_no_retry_will_help(way):
    def handler(_spec, _job):
        raise Abort("the order was withdrawn", code="withdrawn", args={"order": 7})

    end, _ = run_handler(way(handler))
    assert (end.ending, end.error.code) == (Ending.ABORTED, "withdrawn")
    assert end.error.description == "the order was withdrawn"
    assert json.loads(end.error.args) == {"order": 7}


@both_ways
@pytest.mark.parametrize("error", [SystemExit(1), RecursionError(), GeneratorExit()])
def test_no_exception_of_a_handler_ends_its_worker(way, error):
    def handler(_spec, _job):
        raise error

    end, _ = run_handler(way(handler))
    assert (end.ending, end.error.code) == (Ending.FAILED, type(error).__name__)


def test_a_coroutine_that_cancels_itself_has_failed():
    async def handler(_spec, _job):
        raise asyncio.CancelledError

    end, _ = run_handler(handler)
    assert (end.ending, end.error.code) == (Ending.FAILED, "CancelledError")


def test_texts_that_no_database_can_keep_are_mended():
    def handler(_spec, _job):
        raise ValueError("a\0b \ud800" + "x" * 10_000)

    end, _ = run_handler(handler)
    assert end.error.description.startswith("a\ufffdb ?")
    assert len(end.error.description) < 3_000
    assert "\0" not in end.error.args


@both_ways
def test_a_spec_that_is_not_json_aborts_the_task(way):
    end, reports = run_handler(way(lambda _spec, _job: None), "{not json")
    assert (end.ending, end.error.code) == (Ending.ABORTED, "spec")
    assert reports.starts == 0


@both_ways
def test_a_handler_knows_its_task_and_attempt(way):
    def handler(_spec, job):
        return [job.task.id, job.task.queue, job.attempt, job.should_stop()]

    end, _ = run_handler(way(handler))
    assert json.loads(end.metrics) == ["task-1", "default", 1, False]


@both_ways
def test_a_directory_is_made_when_a_handler_asks_for_it(way, tmp_path):
    def handler(_spec, job):
        (job.directory / "result").write_text("42")

    run_handler(way(lambda _spec, _job: None), home=tmp_path)
    assert list(tmp_path.iterdir()) == []
    end, _ = run_handler(way(handler), home=tmp_path)
    assert end.ending is Ending.SUCCEEDED
    (made,) = tmp_path.rglob("result")
    assert made.parent.stat().st_mode & 0o777 == 0o700


@both_ways
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_progress_stays_within_its_bounds(way, value):
    end, reports = run_handler(way(lambda _spec, job: job.progress(value)))
    assert (end.ending, end.error.code) == (Ending.FAILED, "ValueError")
    assert reports.progresses == []


@both_ways
def test_an_output_has_a_proper_name(way):
    end, reports = run_handler(way(lambda _spec, job: job.output("two\nlines")))
    assert (end.ending, end.error.code) == (Ending.FAILED, "ValueError")
    assert reports.messages == []


class Greeting:
    async def __call__(self, spec, _job):
        return spec


async def greet(spec, _job):
    return spec


@pytest.mark.parametrize("function", [greet, partial(greet), Greeting()])
def test_whatever_is_called_like_a_coroutine_function_is_awaited(function):
    end, _ = run_handler(function, '"hello"')
    assert end.metrics == '"hello"'


def test_a_name_is_registered_once_and_must_be_a_name():
    handlers = Handlers()
    handlers.register("it")(print)
    with pytest.raises(BadSetting, match="no other function"):
        handlers.register("it")
    assert handlers.names == {"it"}


def test_a_handler_that_is_registered_without_a_name_has_its_functions():
    handlers = Handlers()

    @handlers.register()
    def resize(_spec, _job):
        return None

    @handlers.register
    def crop(_spec, _job):
        return None

    assert handlers.names == {"resize", "crop"}
    for again in (handlers.register(), handlers.register):
        with pytest.raises(BadSetting, match="no other function"):
            again(resize)


@pytest.mark.parametrize(
    "function",
    [
        lambda: None,
        lambda spec: spec,
        lambda spec, job, size: (spec, job, size),
        lambda *, spec, job: (spec, job),
    ],
)
def test_a_function_that_cannot_be_called_as_a_handler_is_refused_when_it_is_registered(
    function,
):
    handlers = Handlers()
    with pytest.raises(
        BadSetting, match=r"^the handler .it. has the parameters .*: def it\(spec, job\)$"
    ):
        handlers.register("it")(function)
    assert not handlers.names


@pytest.mark.parametrize(
    "function", [print, lambda *_: None, lambda spec, job=None: (spec, job), Greeting()]
)
def test_a_function_that_takes_two_arguments_may_take_more(function):
    handlers = Handlers()
    handlers.register("it")(function)
    assert handlers.names == {"it"}


def test_functions_run_beside_each_other_and_beside_the_loop():
    slots = 3
    handlers = Handlers()
    together = threading.Barrier(slots)

    @handlers.register("it")
    def meet_the_others(_spec, _job):
        together.wait(DEADLINE_SECONDS)

    async def scenario():
        runner = PythonRunner(handlers, threads=slots)
        jobs = [
            await runner.start(assigned(claimed(number, handler="it"), HOME), RecordedReports())
            for number in range(slots)
        ]
        ends = [(await job.wait()).ending for job in jobs]
        runner.stop()
        assert ends == [Ending.SUCCEEDED] * slots

    asyncio.run(scenario())


def test_a_coroutine_may_tidy_up_within_its_grace():
    handlers = Handlers()
    begun = asyncio.Event()

    @handlers.register("it")
    async def tidy(_spec, job):
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            job.message("tidied up")

    async def scenario():
        runner, reports = PythonRunner(handlers), RecordedReports()
        job = await runner.start(assigned(claimed(handler="it"), HOME), reports)
        await begun.wait()
        await job.stop(LONG_GRACE_SECONDS)
        assert (await job.wait()).error.code == "stopped"
        assert reports.messages == [("tidied up", None)]

    asyncio.run(scenario())


@pytest.mark.req("R003-46")
def test_a_coroutine_that_ends_well_although_asked_to_stop_has_succeeded():
    handlers = Handlers()

    @handlers.register("it")
    async def finish(_spec, job):
        try:
            await job.stopped()
        except asyncio.CancelledError:
            return {"finished": job.should_stop()}

    async def scenario():
        runner = PythonRunner(handlers)
        job = await runner.start(assigned(claimed(handler="it"), HOME), RecordedReports())
        await asyncio.wait((asyncio.ensure_future(job.wait()),), timeout=0)
        await job.stop(LONG_GRACE_SECONDS)
        assert (await job.wait()).ending is Ending.SUCCEEDED

    asyncio.run(scenario())


def test_a_function_that_goes_on_after_its_grace_is_no_longer_heard_and_keeps_nobody_waiting():
    handlers = Handlers()
    begun, released, over = threading.Event(), threading.Event(), threading.Event()

    @handlers.register("stubborn")
    def stubborn(_spec, job):
        begun.set()
        released.wait()
        job.message("too late")
        over.set()

    @handlers.register("next")
    def following(_spec, _job):
        return "done"

    async def scenario():
        runner, reports = PythonRunner(handlers, threads=1), RecordedReports()
        job = await runner.start(assigned(claimed(1, handler="stubborn"), HOME), reports)
        assert await asyncio.to_thread(begun.wait, DEADLINE_SECONDS)
        await job.stop(0)
        assert (await job.wait()).error.code == "unstoppable"
        for number in (2, 3):
            job = await runner.start(assigned(claimed(number, handler="next"), HOME), reports)
            async with asyncio.timeout(DEADLINE_SECONDS):
                assert (await job.wait()).ending is Ending.SUCCEEDED
        released.set()
        assert await asyncio.to_thread(over.wait, DEADLINE_SECONDS)
        assert reports.messages == []
        runner.stop()

    asyncio.run(scenario())


def test_a_function_that_was_stopped_before_it_began_never_begins():
    handlers = Handlers()
    begun, released = threading.Event(), threading.Event()
    calls = []

    @handlers.register("long")
    def long(_spec, _job):
        begun.set()
        released.wait()

    @handlers.register("short")
    def short(_spec, _job):
        calls.append("short")

    async def scenario():
        runner, reports = PythonRunner(handlers, threads=1), RecordedReports()
        first = await runner.start(assigned(claimed(1, handler="long"), HOME), reports)
        assert await asyncio.to_thread(begun.wait, DEADLINE_SECONDS)
        second = await runner.start(assigned(claimed(2, handler="short"), HOME), reports)
        stopping = asyncio.ensure_future(second.stop(LONG_GRACE_SECONDS))
        await asyncio.wait((stopping,), timeout=0)
        released.set()
        await stopping
        assert (await second.wait()).error.code == "stopped"
        assert (await first.wait()).ending is Ending.SUCCEEDED
        runner.stop()

    asyncio.run(scenario())
    assert calls == []


def test_a_coroutine_that_was_stopped_before_it_began_never_begins():
    handlers, calls = Handlers(), []

    @handlers.register("it")
    async def it(_spec, _job):
        calls.append("it")

    async def scenario():
        runner = PythonRunner(handlers)
        job = await runner.start(assigned(claimed(handler="it"), HOME), RecordedReports())
        await job.stop(LONG_GRACE_SECONDS)
        assert (await job.wait()).error.code == "stopped"
        runner.stop()

    asyncio.run(scenario())
    assert calls == []


class TestBegunTogether:
    """Coroutines that begin in one turn of the loop, some of which have to wait."""

    WAITING = (2, 3, 5)
    SAID = ContextVar("what a coroutine left in its context")

    def ends(self, function, count=7, stopped=()):
        """Begins so many jobs at once, stops some, and returns how each ended."""
        handlers = Handlers()
        handlers.register("it")(function)

        async def scenario():
            runner = PythonRunner(handlers)
            jobs = [
                await runner.start(
                    assigned(claimed(n, handler="it", spec=str(n)), HOME), RecordedReports()
                )
                for n in range(count)
            ]
            async with asyncio.timeout(DEADLINE_SECONDS):
                await asyncio.sleep(0)
                for n in stopped:
                    await jobs[n].stop(LONG_GRACE_SECONDS)
                ends = [await job.wait() for job in jobs]
            runner.stop()
            return ends

        return asyncio.run(scenario())

    def test_they_run_beside_each_other_each_in_one_task_and_a_context_of_its_own(self):
        order, tasks = [], {}

        async def it(n, _job):
            tasks[n] = asyncio.current_task()
            assert self.SAID.get(None) is None
            self.SAID.set(n)
            order.append(n)
            if n in self.WAITING:
                for _ in range(3):
                    await asyncio.sleep(0)
                    assert (self.SAID.get(), asyncio.current_task()) == (n, tasks[n])
                order.append(n)
            return n

        ends = self.ends(it)
        assert [json.loads(end.metrics) for end in ends] == list(range(7))
        assert sorted(order[:7]) == list(range(7))  # none waited for another
        assert sorted(order[7:]) == list(self.WAITING)
        assert len({tasks[n] for n in self.WAITING}) == len(self.WAITING)

    def test_one_that_is_stopped_takes_no_other_along(self):
        async def it(n, job):
            if n in self.WAITING:
                async with asyncio.timeout(DEADLINE_SECONDS):
                    await (job.stopped() if n == 3 else asyncio.sleep(0))

        ends = self.ends(it, stopped=[3])
        assert [end.error and end.error.code for end in ends] == [None] * 3 + ["stopped"] + [
            None
        ] * 3

    def test_one_that_cancels_its_own_task_cancels_no_other(self):
        async def it(n, _job):
            if n == 1:
                asyncio.current_task().cancel()
            else:
                await asyncio.sleep(0)

        assert {end.ending for end in self.ends(it)} == {Ending.SUCCEEDED}

    def test_a_time_limit_of_its_own_ends_one_alone(self):
        async def it(n, _job):
            async with asyncio.timeout(0 if n == 2 else DEADLINE_SECONDS):
                await (asyncio.Event().wait() if n == 2 else asyncio.sleep(0))

        ends = self.ends(it)
        assert [end.ending is Ending.SUCCEEDED for end in ends] == [n != 2 for n in range(7)]

    def test_one_that_fails_at_once_leaves_the_others_alone(self):
        async def it(n, _job):
            if n == 2:
                raise ValueError(n)
            if n == 3:
                raise SystemExit(n)

        ends = self.ends(it)
        assert [end.ending is Ending.SUCCEEDED for end in ends] == [
            n not in (2, 3) for n in range(7)
        ]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["function", "coroutine"])
def test_a_process_can_exit_although_a_handler_does_not_end(way):
    program = f"""
import asyncio, threading
from pathlib import Path
from tidewheel.runners.python.runner import Handlers, PythonRunner
from tests.kit.runner_conformance import RecordedReports, assigned, claimed

handlers = Handlers()
begun = threading.Event()

@handlers.register("function")
def function(spec, job):
    begun.set()
    threading.Event().wait()

@handlers.register("coroutine")
async def coroutine(spec, job):
    begun.set()
    await asyncio.get_running_loop().create_future()

async def work():
    task = claimed(handler={way!r})
    runner = PythonRunner(handlers)
    await runner.start(assigned(task, Path("/nonexistent")), RecordedReports())
    await asyncio.to_thread(begun.wait)

asyncio.run(work())
"""

    async def scenario():
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert await process.wait() == 0

    asyncio.run(scenario())


def test_a_name_that_is_too_long_is_refused_in_one_sentence():
    with pytest.raises(BadSetting, match=r"^handler has 300 characters; expected up to 256$"):
        Handlers().register("x" * 300)


@both_ways
@pytest.mark.req("R007-13")
def test_a_traceback_begins_in_the_handler_not_in_its_runner(way):
    def handler(_spec, _job):
        raise FileNotFoundError("no such picture")

    end, _ = run_handler(way(handler))
    [first, *_] = re.findall(r'File "(.+)", line', json.loads(end.error.args)["traceback"])
    assert first == __file__
