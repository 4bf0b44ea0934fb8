"""A function as a task: the script with which its job calls it."""

from __future__ import annotations

import asyncio
import inspect
import shlex
from collections.abc import Callable
from pathlib import Path

from tidewheel.formats.python_api.refusals import BadStatement

CALLER = "tidewheel.formats.python_api"  # its __main__

TaskFunction = Callable[[], object]


def check_function(function: TaskFunction) -> None:
    """A job must be able to find it and to call it."""
    where = getattr(function, "__qualname__", repr(function))
    if not (hasattr(function, "__code__") and where.isidentifier()):
        raise BadStatement(
            f"a job cannot find the function {where}",
            "define it with 'def' at the top level of its module",
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BadStatement(
            f"the function {where} has a 'yield' in it: called as a task, it would do nothing",
            "write the loop inside of it, and no 'yield'",
        )
    needed = [
        name
        for name, one in inspect.signature(function).parameters.items()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    if needed:
        raise BadStatement(
            f"the function {where} needs {', '.join(needed)}, and a task is called without "
            "arguments",
            "give them defaults, or read them from the environment",
        )


def call(function: TaskFunction) -> object:
    """Does the work of a job: calls the function, and awaits it if it is async.

    A promise of work that nobody does, such as a generator, is a TypeError, never a success.
    """
    answer = function()
    if inspect.iscoroutine(answer):
        answer = asyncio.run(answer)
    if inspect.isgenerator(answer) or inspect.isasyncgen(answer) or inspect.isawaitable(answer):
        what = type(answer).__name__.replace("_", " ")
        if inspect.iscoroutine(answer):
            answer.close()  # or Python adds a warning of its own
        raise TypeError(
            f"the function {function.__name__} returned {'an' if what[0] in 'aeiou' else 'a'} "
            f"{what} that nobody runs, so its work is not done: run it inside of the function"
        )
    return answer


def script_of(function: TaskFunction, task: str) -> str:
    """Returns shell text that calls the function; it needs tidewheel in the job's Python."""
    module = function.__module__
    home = module if "." in module else str(Path(function.__code__.co_filename).absolute())
    return shlex.join(["python3", "-m", CALLER, home, task])
