"""Functions of a workflow are called in a process of their own, whatever they do there."""

import asyncio
import os
import signal

import pytest

from tests.support.patience import eventually
from tidewheel.runners.processes import read_row
from tidewheel.runners.python.functions import (
    FunctionAnswer,
    FunctionFailure,
    FunctionLimits,
    Functions,
)

SMALL = FunctionLimits(memory_bytes=1024**3, answer_bytes=10_000)


class Library:
    """A run directory with functions in it."""

    def __init__(self, directory):
        self.directory = directory
        (directory / "lib" / "python").mkdir(parents=True)

    def write(self, name, text):
        (self.directory / "lib" / "python" / f"{name}.py").write_text(text)

    def calls(self, *calls, limits=SMALL):
        """The answers to (function, arguments, keywords), all called at once."""

        async def call_all():
            functions = Functions(self.directory, os.environ, limits)
            try:
                return await asyncio.gather(*(functions.call(*one) for one in calls))
            finally:
                await functions.close()

        return asyncio.run(call_all())

    def call(self, name, *arguments, **keywords):
        return self.calls((name, arguments, keywords))[0]


@pytest.fixture
def library(tmp_path):
    return Library(tmp_path)


def test_a_function_of_the_workflow_is_called_with_its_arguments(library):
    library.write("helper", "NAME = 'helped'")
    library.write(
        "mine",
        "import helper\n"
        "def mine(a, b=None):\n"
        "    print('looking')\n"
        "    return a == 1, {'b': b, 'who': helper.NAME}\n",
    )
    assert library.calls(("mine", [1], {"b": 2.5}), ("mine", [2], {})) == [
        FunctionAnswer(True, {"b": "2.5", "who": "helped"}, "looking\n"),
        FunctionAnswer(False, {"b": "None", "who": "helped"}, "looking\n"),
    ]


def test_functions_come_with_tidewheel(library):
    echo, always, never = library.calls(
        ("echo", ["a"], {"succeed": True, "egg": "poached"}),
        ("xrandom", [100], {}),
        ("xrandom", [0, 0, "x"], {}),
    )
    assert echo.satisfied
    assert echo.results == {"succeed": "True", "egg": "poached"}
    assert always.satisfied
    assert set(always.results) == {"COLOR", "SIZE"}
    assert not never.satisfied


def test_a_function_of_the_workflow_goes_before_one_of_the_same_name(library):
    library.write("echo", "def echo():\n    return True, {'mine': 'yes'}\n")
    assert library.call("echo").results == {"mine": "yes"}


def test_each_call_is_as_fresh_as_one_in_a_process_of_its_own(library):
    library.write(
        "count", "N = 0\ndef count():\n    global N\n    N += 1\n    return True, {'n': N}\n"
    )
    answers = library.calls(*[("count", [], {})] * 20)
    assert {one.results["n"] for one in answers} == {"1"}


BAD = {
    "raise ValueError('no such host')": "it raised ValueError: no such host",
    "import sys; sys.exit(3)": "it raised SystemExit: 3",
    "return 5": "it returned 5; it must return",
    "return True, [1]": "its results are [1]",
    "return True, dict.fromkeys(range(1_500))": "it returned 1500 results; at most 1000",
    "return True, {'x': 'y' * 100_000}": "bytes",
    "x = bytearray(10**10); return True, {}": "more memory",
    "import os; os.kill(os.getpid(), 11)": "SIGSEGV",
    "import os; os._exit(4)": "exit status 4",
}


def test_whatever_a_function_does_there_is_an_answer_and_no_other_is_harmed(library):
    for number, body in enumerate(BAD):
        library.write(f"bad{number}", f"def bad{number}():\n    {body}\n")
    library.write("noise", "def noise():\n    print('x' * 10**7)\n    return True, {}\n")
    bad = [(f"bad{number}", [], {}) for number in range(len(BAD))]
    *failures, noise = library.calls(*bad, ("noise", [], {}))
    assert noise.satisfied
    assert len(noise.said) <= 2_000
    assert [type(one) for one in failures] == [FunctionFailure] * len(BAD)
    for failure, reason in zip(failures, BAD.values(), strict=True):
        assert reason in failure.reason


def test_a_function_that_does_not_end_is_killed(library):
    library.write("sleep", "import time\ndef sleep():\n    time.sleep(60)\n")
    library.write("loop", "def loop():\n    while True: pass\n")
    calls = (("sleep", [], {}), ("loop", [], {}))
    for failure in library.calls(*calls, limits=FunctionLimits(wall_seconds=0.5)):
        assert failure == FunctionFailure("it took more than 0.5 seconds")


def test_a_function_that_kills_the_process_that_calls_it_has_no_answer(library):
    library.write(
        "bad", "import os, time\ndef bad():\n    os.kill(os.getppid(), 9)\n    time.sleep(9)\n"
    )
    assert "died" in library.call("bad").reason


def test_a_function_that_cannot_be_loaded_is_a_failure_that_says_why(library):
    library.write("empty", "")
    library.write("bad", "def bad(:\n")
    missing, empty, bad = library.calls(
        *((name, [], {}) for name in ("missing", "empty", "bad"))
    )
    assert "there is no function missing" in missing.reason
    assert "has no function empty" in empty.reason
    assert "SyntaxError" in bad.reason
    assert "def bad(:" in bad.said


def test_what_a_function_leaves_behind_ends_with_it(library):
    library.write(
        "daemon",
        "import subprocess\n"
        "def daemon():\n"
        "    return True, {'pid': subprocess.Popen(['sleep', '60']).pid}\n",
    )
    pid = int(library.call("daemon").results["pid"])
    eventually(lambda: (row := read_row(pid)) is None or row.ended, "the daemon is gone")


def test_a_child_that_was_killed_is_started_again(library):
    library.write("ppid", "import os\ndef ppid():\n    return True, {'pid': os.getppid()}\n")

    async def call_twice():
        functions = Functions(library.directory, os.environ, SMALL)
        first = await functions.call("ppid", [], {})
        os.kill(int(first.results["pid"]), signal.SIGKILL)
        answers = [await functions.call("ppid", [], {}) for _ in range(2)]
        await functions.close()
        return answers

    assert asyncio.run(call_twice())[-1].satisfied


def test_functions_that_were_closed_can_be_called_again(library):
    async def call():
        functions = Functions(library.directory, os.environ, SMALL)
        await functions.call("echo", [], {"succeed": True})
        await functions.close()
        answer = await functions.call("echo", [], {"succeed": True})
        await functions.close()
        return answer

    assert asyncio.run(call()).satisfied
