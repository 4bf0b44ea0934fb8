"""Makes functions tasks: binds their arguments, calls them, and hands on what they return.

``b(a())`` says two things: b comes after a, and its argument is what a returns. An argument is
a task (its value arrives with the job) or a constant, which the job finds when it imports the
module again. A value travels as JSON; an annotation says what becomes of it: a dataclass, a
Path, a datetime. A task returns an object as it is, and anything else as ``{"return": …}``.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import shlex
import sys
import typing
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tidewheel.core.graph.findings import Findings
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.operator.definition import RUN_DIRECTORY
from tidewheel.core.queue.values import FILE, RETURN
from tidewheel.formats.flow_cylc.graph_text import GraphTokenKind
from tidewheel.formats.python_api.terms import (
    BadStatement,
    Statement,
    StatementLog,
    TaskFunction,
    Term,
    TermLeaf,
)

if TYPE_CHECKING:
    from tidewheel.formats.python_api.declarations import Declarations, Task

CALLER = "tidewheel.formats.python_api"  # its __main__
ARGUMENT = "TIDEWHEEL_ARGUMENT_"  # and the parameter: the value of a task, as JSON
OUTPUTS = "TIDEWHEEL_OUTPUTS"
RUN_ONCE = "R1"


def check_function(function: TaskFunction) -> None:
    """Raises BadStatement unless a job can find the function and call it."""
    where = getattr(function, "__qualname__", repr(function))
    if not (hasattr(function, "__code__") and where.isidentifier()):
        seen = f"a job cannot find the function {where}"
        raise BadStatement(seen, "define it with 'def' at the top level of its module")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BadStatement(
            f"the function {where} has a 'yield' in it: called as a task, it would do nothing",
            "write the loop inside of it, and no 'yield'",
        )
    for name, one in inspect.signature(function).parameters.items():
        if one.kind is one.POSITIONAL_ONLY:
            seen = f"the parameter {name} of {where} is positional only"
            raise BadStatement(seen, "leave out the '/': a job gives arguments by name")


def script_of(function: TaskFunction, task: str, folder: Path) -> str:
    """Returns shell text that calls the function; it needs tidewheel in the job's Python.

    Files in the workflow's folder are kept with a run, and found in the folder of the run.
    """
    module, name = function.__module__, shlex.quote(task)
    if "." in module:
        return f"python3 -m {CALLER} {shlex.quote(module)} {name}"
    file = Path(function.__code__.co_filename).absolute()
    if not file.is_relative_to(folder):
        return f"python3 -m {CALLER} {shlex.quote(str(file))} {name}"
    inside = shlex.quote(file.relative_to(folder).as_posix())
    return f'python3 -m {CALLER} "${RUN_DIRECTORY}"/{inside} {name}'


# ---- arguments, when the workflow is defined ----


def bind(task: Task, args: tuple[object, ...], keywords: Mapping[str, object]) -> None:
    """Records that a task is called with these arguments: tasks are before it in the graph."""
    ledger = task.ledger
    function = ledger.functions.get(task.name)
    if function is None:
        seen = f"{task} is called with arguments, and has no function"
        raise BadStatement(seen, f"put @flow.task above a function {task}, or join it by >>")
    signature = inspect.signature(function)
    try:
        given = signature.bind(*args, **keywords).arguments
    except TypeError as error:
        seen = f"{task} cannot be called like this: {error}"
        raise BadStatement(seen, f"its function is {task}{signature}") from None
    _check_given(task, signature, given)
    known = ledger.arguments.setdefault(task.name, dict(given))
    if _compared(known) != _compared(given):
        seen = f"{task} is called a second time, with other arguments"
        raise BadStatement(seen, "make it two tasks: a function may be the task of both")
    parents = [_checked(task, name, one) for name, one in given.items() if _is_term(one)]
    opened = ledger.current is None
    if opened:
        ledger.open(RUN_ONCE)
    try:
        for parent in parents:
            _ = Statement.beginning(parent) >> task
        if not parents:
            Statement.beginning(task).place()
    finally:
        if opened:
            ledger.current = None


def _check_given(task: Task, signature: inspect.Signature, given: Mapping[str, object]) -> None:
    """Raises BadStatement if a job could not give one of these arguments."""
    for name, value in given.items():
        if (one := signature.parameters[name]).kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            seen = f"{task} is given arguments for {one}, whose names no job would know"
            raise BadStatement(seen, "name each parameter of the function")
        if not _is_term(value) and _hides_a_task(value):
            seen = f"{task}({name}=…): a task is inside of the value, where nobody looks for it"
            raise BadStatement(seen, "give each task as an argument of its own")


def _compared(given: Mapping[str, object]) -> dict[str, str]:
    """Returns arguments so that those of two calls can be compared."""
    return {name: str(one) if _is_term(one) else repr(one) for name, one in given.items()}


def _is_term(value: object) -> bool:
    return isinstance(value, TermLeaf)


def _hides_a_task(value: object) -> bool:
    if isinstance(value, Term | Statement):
        return True
    if isinstance(value, Mapping):
        return any(map(_hides_a_task, (*value.keys(), *value.values())))
    return isinstance(value, list | tuple | set | frozenset) and any(map(_hides_a_task, value))


def _checked(task: Task, name: str, value: object) -> TermLeaf:
    assert isinstance(value, TermLeaf)
    said = value.mention
    is_task = said.kind is GraphTokenKind.NODE and not said.is_family and not said.suicide
    if not is_task or said.output not in (None, SUCCEEDED):
        seen = f"{task}({name}={value}): {value} has no value"
        raise BadStatement(seen, "give a task, or a task at another point: model[-1]")
    return value


def read_arguments(
    ledger: StatementLog, declared: Declarations, findings: Findings
) -> dict[str, dict[str, str]]:
    """Returns the inputs of each task that its arguments are; an argument that a function lacks
    or cannot take has a finding."""
    found: dict[str, dict[str, str]] = {}
    for name, function in ledger.functions.items():
        given = ledger.arguments.get(name, {})
        position = declared.by_name[name].position
        if lacking := missing_arguments(function, given):
            seen = f"the function {name} needs {', '.join(lacking)}, and is not given it"
            places = ", ".join("…" for _ in lacking)
            hint = f"call it with tasks whose values it takes: {name}({places})"
            findings.error("missing-argument", seen, hint, position)
        inputs = {one: value for one, value in given.items() if isinstance(value, TermLeaf)}
        for parameter, parent in inputs.items():
            if wrong := _wrong_type(ledger, function, parameter, parent):
                findings.error(
                    "wrong-type", f"{name}({parameter}={parent}): {wrong}", "", position
                )
        if inputs:
            found[name] = {
                f"{ARGUMENT}{one}": _reference(value) for one, value in inputs.items()
            }
    return found


def missing_arguments(function: TaskFunction, given: Collection[str]) -> list[str]:
    """Returns the parameters that a function needs and is not given."""
    return [
        name
        for name, one in inspect.signature(function).parameters.items()
        if one.default is one.empty
        and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        and name not in given
    ]


def _reference(parent: TermLeaf) -> str:
    said = parent.mention
    return said.name if said.offset is None else f"{said.name}[{said.offset}]"


_PLAIN = (bool, int, float, str, list, dict)


def _wrong_type(
    ledger: StatementLog, function: TaskFunction, parameter: str, parent: TermLeaf
) -> str:
    """Returns what is wrong if both sides are annotated with plain types that differ."""
    giver = ledger.functions.get(parent.mention.name)
    if giver is None:
        return ""
    returned, taken = _hints(giver).get(RETURN), _hints(function).get(parameter)
    if returned not in _PLAIN or taken not in _PLAIN or returned is taken:
        return ""
    if (returned, taken) == (int, float):
        return ""
    return f"{parent} returns {returned.__name__}, and {parameter} is {taken.__name__}"


def _hints(function: TaskFunction) -> dict[str, object]:
    try:
        return typing.get_type_hints(function)
    except Exception:  # names that exist only for type checkers
        return {}


# ---- in the job ----


def run_job(ledger: StatementLog, task: str) -> None:
    """Does the work of a job: calls the function with its arguments, and hands on its value."""
    function = ledger.functions[task]
    given = ledger.arguments.get(task, {})
    hints = _hints(function)
    arguments = {
        name: _argument(name, hints.get(name)) if isinstance(value, TermLeaf) else value
        for name, value in given.items()
        if not (isinstance(value, TermLeaf) and _has_default(function, name))
    }
    answer = call(function, arguments)
    mentions = (
        value.mention.name
        for others in ledger.arguments.values()
        for value in others.values()
        if isinstance(value, TermLeaf)
    )
    _hand_on(function, answer, is_taken=task in set(mentions))


def _has_default(function: TaskFunction, name: str) -> bool:
    """Says whether a default stands in for a value that no task of this run returns."""
    default = inspect.signature(function).parameters[name].default
    return f"{ARGUMENT}{name}" not in os.environ and default is not inspect.Parameter.empty


def call(function: TaskFunction, arguments: Mapping[str, object]) -> object:
    """Calls the function, and awaits it if it is async.

    If the function returns work that nobody does, such as a generator, that is a TypeError and
    never a success.
    """
    answer = function(**arguments)
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


def arguments_in(variables: Mapping[str, str]) -> dict[str, object]:
    """Returns the arguments of a function among the variables of a job, as they were sent."""
    return {
        name.removeprefix(ARGUMENT): _sent(text)
        for name, text in variables.items()
        if name.startswith(ARGUMENT)
    }


def _sent(text: str) -> object:
    """Returns the value of a task from the variable that holds it."""
    value = json.loads(text)
    is_wrapped = isinstance(value, dict) and list(value) == [RETURN]
    return value[RETURN] if is_wrapped else value


def _argument(name: str, hint: object) -> object:
    value = _sent(os.environ[f"{ARGUMENT}{name}"])
    if isinstance(value, dict) and FILE in value:
        value = value[FILE]
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
                f"the function {function.__name__} returned what JSON cannot hold: {error}"
            ) from None
        sys.stdout.write(f"the value of {function.__name__} is not kept: {error}\n")
        return
    Path(os.environ[OUTPUTS]).write_text(said)


def values_of(answer: object) -> str:
    """Returns what a function returned as the values of its task, a JSON object.

    Raises TypeError, ValueError or OverflowError for what JSON cannot hold.
    """
    plain = msgspec.to_builtins(answer, enc_hook=_plain, str_keys=True)
    text = json.dumps(plain, allow_nan=False)
    is_object = text.startswith("{") and list(json.loads(text)) != [RETURN]
    return text if is_object else f'{{"{RETURN}": {text}}}'


def _plain(value: object) -> object:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a {type(value).__name__}")
