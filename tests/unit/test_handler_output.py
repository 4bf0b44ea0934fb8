"""What handlers print: each into the log of its own task, whatever else runs in the process."""

import asyncio
import logging
import sys
import threading
from functools import partial

import pytest

from tests.kit.runner_conformance import DEADLINE_SECONDS, RecordedReports, assigned, claimed
from tidewheel.core.queue.requests import Ending
from tidewheel.runners.python.runner import Handlers, PythonRunner

pytestmark = pytest.mark.req("R007-13")


def run_handlers(home, functions, **limits):
    """Has each function called as a task of its own, all at once; returns ends and reports."""
    handlers = Handlers()
    for number, function in enumerate(functions):
        handlers.register(str(number))(function)

    async def scenario():
        runner = PythonRunner(handlers, threads=len(functions), **limits)
        reports, jobs = RecordedReports(), []
        for number in range(len(functions)):
            assignment = assigned(claimed(number, handler=str(number)), home / str(number))
            jobs.append(await runner.start(assignment, reports))
        async with asyncio.timeout(DEADLINE_SECONDS):
            ends = [await job.wait() for job in jobs]
        runner.stop()
        return ends, reports

    return asyncio.run(scenario())


def logs(home, number=0):
    """The files of one task, as texts by name."""
    found = (path for path in (home / str(number)).rglob("job.*") if path.is_file())
    return {path.name: path.read_text("utf-8") for path in found}


def as_coroutine(function):
    async def coroutine(spec, job):
        return function(spec, job)

    return coroutine


both_ways = pytest.mark.parametrize(
    "way", [lambda function: function, as_coroutine], ids=["function", "coroutine"]
)


@both_ways
def test_what_a_handler_prints_is_in_the_log_of_its_task(way, tmp_path, capsys):
    def handler(_spec, _job):
        print("good", 1)
        print("bad \ud800", file=sys.stderr)
        sys.stdout.buffer.write("é\n".encode())
        sys.stdout.writelines(["a", "b\n"])

    [end], reports = run_handlers(tmp_path, [way(handler)])
    assert end.ending is Ending.SUCCEEDED
    assert logs(tmp_path) == {"job.out": "good 1\né\nab\n", "job.err": "bad \\ud800\n"}
    assert reports.logs_begun == 1
    [out] = tmp_path.rglob("job.out")
    assert (out.stat().st_mode & 0o777, out.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert capsys.readouterr() == ("", "")


@both_ways
def test_a_handler_that_prints_nothing_has_neither_folder_nor_file(way, tmp_path):
    def handler(_spec, _job):
        print(end="")
        sys.stdout.flush()

    _, reports = run_handlers(tmp_path, [way(handler)])
    assert (list(tmp_path.iterdir()), reports.logs_begun) == ([], 0)


def test_handlers_at_once_print_each_to_its_own_log(tmp_path):
    count, lines = 4, 50
    together = threading.Barrier(count)

    def threaded(number):
        def handler(_spec, _job):
            for line in range(lines):
                together.wait(DEADLINE_SECONDS)
                print(number, line)

        return handler

    def looped(number):
        async def handler(_spec, _job):
            for line in range(lines):
                print(number, line)
                await asyncio.sleep(0)
            await asyncio.to_thread(print, number, "elsewhere")
            await asyncio.create_task(as_coroutine(lambda *_: print(number, "apart"))(0, 0))

        return handler

    functions = [threaded(number) for number in range(count)]
    functions += [looped(number) for number in range(count, 2 * count)]
    run_handlers(tmp_path, functions)
    for number in range(2 * count):
        wanted = [f"{number} {line}" for line in range(lines)]
        wanted += [f"{number} elsewhere", f"{number} apart"] if number >= count else []
        assert logs(tmp_path, number)["job.out"].splitlines() == wanted


def test_what_others_print_goes_where_it_went(tmp_path, capsys):
    handlers = Handlers()

    @handlers.register("function")
    def function(_spec, _job):
        print("mine")

    @handlers.register("coroutine")
    async def coroutine(_spec, _job):
        print("mine")

    async def scenario():
        runner, ended = PythonRunner(handlers), asyncio.Queue()

        def hear_end(end):
            print("the worker says", end.ending.value)
            ended.put_nowait(end)

        for number, name in enumerate(("function", "coroutine")):
            task = claimed(number, handler=name)
            assign = partial(assigned, task, tmp_path / name)
            runner.start_now(task, assign, RecordedReports(), hear_end)
            print("so does the loop")
            await asyncio.wait_for(ended.get(), DEADLINE_SECONDS)
        runner.stop()

    asyncio.run(scenario())
    said = "so does the loop\nthe worker says succeeded\n"
    assert capsys.readouterr().out == said * 2
    assert [path.read_text() for path in tmp_path.rglob("job.out")] == ["mine\n"] * 2


def test_what_goes_on_after_the_end_of_its_attempt_prints_to_the_worker(tmp_path, capsys):
    later = []

    async def handler(_spec, _job):
        print("now")

        async def linger():
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            print("later")

        later.append(asyncio.create_task(linger()))

    async def last(_spec, _job):
        await later[0]

    run_handlers(tmp_path, [handler, last])
    assert (logs(tmp_path)["job.out"], capsys.readouterr().out) == ("now\n", "later\n")


def test_a_log_that_grows_too_large_loses_all_but_its_end(tmp_path):
    def handler(_spec, _job):
        for line in range(1_000):
            print("line", line)

    run_handlers(tmp_path, [handler], log_bytes_max=500)
    log = logs(tmp_path)["job.out"]
    assert len(log) <= 600 and log.endswith("line 998\nline 999\n")
    assert "bytes were dropped here" in log


def test_a_log_that_cannot_be_written_costs_no_task_its_success(tmp_path, capsys):
    (tmp_path / "0").write_text("a file where a folder should be")
    [end], _ = run_handlers(tmp_path, [lambda _spec, _job: print("said anyway")])
    assert end.ending is Ending.SUCCEEDED
    assert capsys.readouterr().out == "said anyway\n"


def test_logging_to_a_stream_goes_to_the_log_of_the_task(tmp_path):
    mine = logging.StreamHandler()  # which keeps the stream that is there now
    logging.getLogger().addHandler(mine)

    def handler(_spec, _job):
        logging.getLogger("mine").warning("beware of %s", "the dog")

    try:
        run_handlers(tmp_path, [handler])
        assert mine.stream is sys.stderr
    finally:
        logging.getLogger().removeHandler(mine)
    assert logs(tmp_path) == {"job.err": "beware of the dog\n"}


def test_the_streams_are_put_back_by_the_last_runner_that_stops():
    before = sys.stdout, sys.stderr
    first, second = PythonRunner(Handlers()), PythonRunner(Handlers())
    first.stop()
    assert sys.stdout is not before[0]
    assert (sys.stdout.encoding, sys.stdout.isatty()) == (before[0].encoding, False)
    second.stop()
    assert (sys.stdout, sys.stderr) == before


def test_a_handler_that_closes_its_output_closes_nothing_of_its_worker(tmp_path, capsys):
    def handler(_spec, _job):
        sys.stdout.buffer.close()
        sys.stdout.close()
        print("still here")

    [end], _ = run_handlers(tmp_path, [handler])
    assert end.ending is Ending.SUCCEEDED
    assert logs(tmp_path) == {"job.out": "still here\n"}
    print("and so is the worker")
    assert capsys.readouterr().out == "and so is the worker\n"
