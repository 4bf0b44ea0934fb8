"""Does the work of jobs of functions: calls them, and hands on what they return.

A value travels as JSON; an annotation says what becomes of it: a dataclass, a Path, a datetime.
A task returns an object as it is, and anything else as ``{"return": …}``.

A process may end with status 0 and have done nothing: by ``os._exit(0)``, by ``os.exec…``, or
because a library calls ``exit``. So a job notes in its ``job.status`` that a function has to
return, and strikes the note out when it has; while the note stands, no runner calls the job's
end a success.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import os
import sys
import typing
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from tidewheel.core.graph.definition import ARGUMENT
from tidewheel.core.queue.values import FILE, RETURN
from tidewheel.formats.python_api.functions import (
    TaskValue,
    hints_of,
    is_element,
    is_gathered,
    node_of,
)
from tidewheel.formats.python_api.terms import StatementLog, TaskFunction, TermLeaf

OUTPUTS, INPUTS = "TIDEWHEEL_OUTPUTS", "TIDEWHEEL_INPUTS"
JOB_DIRECTORY, STATUS_NAME, TO_RETURN = "TIDEWHEEL_JOB_DIR", "job.status", "TIDEWHEEL_TO_RETURN"


class FunctionToReturn:
    """Is the note that the function of a task has to return."""

    def __init__(self, task: str) -> None:
        self._task, self._process = task, os.getpid()
        self._path = os.path.join(os.environ.get(JOB_DIRECTORY, ""), STATUS_NAME)

    def note(self) -> None:
        self._write(self._task)

    def strike_out(self) -> None:
        """Takes the note back, unless this is another process, which the function forked."""
        if os.getpid() == self._process:
            self._write("")

    def _write(self, task: str) -> None:
        try:
            opened = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        except FileNotFoundError:  # somebody tries the function without a job
            return
        try:
            os.write(opened, f"{TO_RETURN}={task}\n".encode())
        finally:
            os.close(opened)


def run_job(ledger: StatementLog, task: str) -> None:
    """Does the work of a job: calls the function with its arguments, and hands on its value."""
    function = ledger.functions[task]
    given = ledger.arguments.get(task, {})
    hints, signature = hints_of(function), inspect.signature(function)
    sent = sent_arguments(ledger, task, os.environ, _inputs())
    arguments: dict[str, object] = {}
    for name, value in given.items():
        if not isinstance(value, TermLeaf):
            arguments[name] = value
        elif name in sent:
            arguments[name] = _converted(name, sent[name], hints.get(name))
        elif signature.parameters[name].default is inspect.Parameter.empty or is_element(
            ledger, task, name
        ):
            raise TypeError(f"the argument {name} is missing: {value} returned no such value")
    mentions = {
        value.mention.name
        for others in ledger.arguments.values()
        for value in others.values()
        if isinstance(value, TermLeaf)
    }
    mentions |= {one.source for one in ledger.lists.values()}
    is_taken, process = task in mentions, os.getpid()
    try:
        answer = call(function, arguments)
    except SystemExit as end:
        if is_taken and is_success(end) and os.getpid() == process:
            raise TypeError(
                f"the function {function.__name__} ended with sys.exit() instead of returning "
                "the value that other tasks take"
            ) from None
        raise
    if os.getpid() != process:
        raise RuntimeError(
            f"a process that {function.__name__} made with os.fork() returned from it, too; "
            "end such a process with os._exit()"
        )
    _hand_on(function, answer, is_taken=is_taken)


def is_success(end: SystemExit) -> bool:
    """Says whether Python would end with status 0."""
    return end.code is None or end.code == 0


def _inputs() -> dict[str, object]:
    """Returns all that the tasks before a job returned."""
    path = os.environ.get(INPUTS)
    read = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    assert isinstance(read, dict)
    return read


def sent_arguments(
    ledger: StatementLog, task: str, variables: Mapping[str, str], inputs: Mapping[str, object]
) -> dict[str, object]:
    """Returns the arguments that a job is sent by other tasks, as JSON has them, from its
    variables and its inputs; one that nobody returned is not among them."""
    found: dict[str, object] = {}
    for name, value in ledger.arguments.get(task, {}).items():
        if not isinstance(value, TermLeaf):
            continue
        if is_element(ledger, task, name):
            over = ledger.mapped[task].over
            told = inputs.get(over.source)
            if isinstance(told, dict) and over.parameter in told:
                found[name] = _path_of(told[over.parameter])
        elif (text := variables.get(f"{ARGUMENT}{name}")) is not None:
            returned = json.loads(text)
            if isinstance(value, TaskValue):
                found[name] = returned
            elif is_gathered(ledger, task, value):
                found[name] = [_unwrapped(one) for one in returned]
            else:
                found[name] = _unwrapped(returned)
        elif is_gathered(ledger, task, value) and value.mention.offset is None:
            returned = inputs.get(node_of(ledger, value.mention.name))
            if isinstance(returned, list):  # it was too much for a variable
                found[name] = [_picked(value, one) for one in returned]
    return found


def _picked(value: TermLeaf, told: object) -> object:
    """Returns what an argument stands for in all values of a task, which has that."""
    if isinstance(value, TaskValue):
        assert isinstance(told, dict)
        return _path_of(told[value.value_name])
    return _unwrapped(told)


def _unwrapped(told: object) -> object:
    """Returns what a function returned of the values of its task."""
    if isinstance(told, dict) and list(told) == [RETURN]:
        told = told[RETURN]
    return _path_of(told)


def _path_of(value: object) -> object:
    """Returns a value as a function gets it: of a file the path."""
    return value[FILE] if isinstance(value, dict) and FILE in value else value


def call(function: TaskFunction, arguments: Mapping[str, object]) -> object:
    """Calls the function, and awaits it if it is async.

    If the function returns work that nobody does, such as a generator, that is a TypeError and
    never a success; nor is an error that it returns, or a program that has failed.
    """
    answer = function(**arguments)
    if inspect.iscoroutine(answer):
        answer = asyncio.run(_awaited(function, answer))
    several: Iterable[object] = ()
    if isinstance(answer, dict):
        several = answer.values()
    elif isinstance(answer, list | tuple | set):
        several = answer
    for one in (answer, *several):
        within = "" if one is answer else "something with "
        if _is_to_do(one):
            _refuse_work(function, one, within)
        if fault := _fault_of(one):
            raise TypeError(f"the function {function.__name__} returned {within}{fault}")
    return answer


async def _awaited(function: TaskFunction, answer: Coroutine[object, object, object]) -> object:
    """Awaits the function, and says which asyncio tasks it has left: they are cancelled now."""
    returned = await answer
    others = asyncio.all_tasks() - {asyncio.current_task()}
    left = sorted(getattr(one.get_coro(), "__qualname__", one.get_name()) for one in others)
    if left:
        sys.stderr.write(
            f"warning: {function.__name__} has returned before these asyncio tasks had ended, "
            f"which are cancelled now: {', '.join(left)}; await them if their work counts\n"
        )
    return returned


def _is_to_do(value: object) -> bool:
    """Says whether something returned is work that nobody will do, or whose end nobody sees."""
    is_lazy = isinstance(value, map | filter) or type(value).__module__ == "itertools"
    is_generator = inspect.isgenerator(value) or inspect.isasyncgen(value)
    is_call = inspect.isroutine(value) or isinstance(value, functools.partial)
    is_future = isinstance(value, _loaded("concurrent.futures", "Future"))
    is_left = is_future or _is_running(value) or inspect.isawaitable(value)
    return is_lazy or is_generator or is_call or is_left


def _is_running(value: object) -> bool:
    if isinstance(value, _loaded("subprocess", "Popen")):
        return value.poll() is None
    others = (_loaded("threading", "Thread"), _loaded("multiprocessing.process", "BaseProcess"))
    return isinstance(value, others) and value.is_alive()


def _fault_of(value: object) -> str:
    """Says why something returned is no success; "" if nothing speaks against it."""
    if isinstance(value, BaseException):
        return f"the error {value!r} instead of raising it"
    status = 0
    programs = (_loaded("subprocess", "CompletedProcess"), _loaded("subprocess", "Popen"))
    if isinstance(value, programs):
        status = value.returncode
    elif isinstance(value, _loaded("multiprocessing.process", "BaseProcess")):
        status = value.exitcode
    if not status:
        return ""
    what = f"a {type(value).__name__} with exit status {status}"
    return f"{what}: check it, as subprocess.run(…, check=True) does"


def _loaded(module: str, name: str) -> type[typing.Any]:
    """Returns a class of a module; if the function has not imported that, one that nothing is
    an instance of."""
    found: type[typing.Any] = getattr(sys.modules.get(module), name, _Nothing)
    return found


class _Nothing:
    """Has no instances."""


def _refuse_work(function: TaskFunction, work: object, within: str) -> NoReturn:
    what = type(work).__name__.replace("_", " ")
    if inspect.iscoroutine(work):
        work.close()  # or Python adds a warning of its own
    article = "an" if what[0].lower() in "aeiou" else "a"
    raise TypeError(
        f"the function {function.__name__} returned {within}{article} {what} that nobody runs "
        "or waits for, so its work is not done: do it inside the function"
    )


def _converted(name: str, value: object, hint: object) -> object:
    if hint is None:
        return value
    try:
        return msgspec.convert(value, hint, dec_hook=_made)
    except msgspec.ValidationError as error:
        raise TypeError(f"the argument {name} is {value!r}: {error}") from None


def _made(kind: typing.Any, value: object) -> object:  # noqa: ANN401 - any annotation
    """Makes what JSON does not know, such as a Path, of its text."""
    return kind(value)


def _hand_on(function: TaskFunction, answer: object, *, is_taken: bool) -> None:
    """Writes what a function returned for the tasks after it. If no task takes it, a value that
    JSON cannot hold is dropped, with a line in the job's log."""
    if answer is None and not is_taken:
        return
    try:
        said = values_of(answer)
    except (TypeError, ValueError, OverflowError) as error:
        if is_taken:
            raise TypeError(
                f"the function {function.__name__} returned a value that JSON cannot hold: "
                f"{error}"
            ) from None
        sys.stdout.write(f"what {function.__name__} returned is not stored: {error}\n")
        return
    Path(os.environ[OUTPUTS]).write_text(said, encoding="utf-8")


def values_of(answer: object) -> str:
    """Returns what a function returned as the values of its task, a JSON object.

    Raises TypeError, ValueError or OverflowError for what JSON cannot hold.
    """
    plain = msgspec.to_builtins(answer, enc_hook=_plain, str_keys=True)
    text = json.dumps(plain, allow_nan=False, ensure_ascii=False)
    text.encode()  # JSON of others cannot hold halves of characters
    is_object = text.startswith("{") and list(json.loads(text)) != [RETURN]
    return text if is_object else f'{{"{RETURN}": {text}}}'


def _plain(value: object) -> object:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a {type(value).__name__}")
