"""Makes functions tasks, and binds their arguments.

``b(a())`` says two things: b comes after a, and its argument is what a returns. An argument is
a task (its value arrives with the job) or a constant, which the job finds when it imports the
module again.

``b.map(a())`` says that b is run for each element of the list that a returns: b is the mapped
task ``b<x>`` of the graph, where x is the parameter that takes the element.
"""

from __future__ import annotations

import inspect
import re
import shlex
import typing
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tidewheel.core.graph.definition import ARGUMENT, ELEMENTS_MAX, element_name, template_name
from tidewheel.core.graph.findings import Findings
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.operator.definition import RUN_DIRECTORY
from tidewheel.core.queue.values import RETURN
from tidewheel.formats.flow_cylc.graph_text import GraphTokenKind
from tidewheel.formats.flow_cylc.items import TASK_PARAMETERS
from tidewheel.formats.flow_cylc.values import BadValue, read_parameter
from tidewheel.formats.python_api.terms import (
    BadStatement,
    MappedCall,
    MappedList,
    Mention,
    Named,
    Statement,
    StatementLog,
    TaskFunction,
    Term,
    TermLeaf,
    written_at,
)

if TYPE_CHECKING:
    from tidewheel.formats.python_api.declarations import Declarations, Task

CALLER = "tidewheel.formats.python_api"  # its __main__
PYTHON = '"${TIDEWHEEL_PYTHON:-python3}"'  # as runners/job_environment.py sets it
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
            "run the whole loop inside the function, without 'yield'",
        )
    for name, one in inspect.signature(function).parameters.items():
        if one.kind is one.POSITIONAL_ONLY:
            seen = f"the parameter {name} of {where} is positional only"
            raise BadStatement(seen, "leave out the '/': a job gives arguments by name")


def script_of(function: TaskFunction, task: str, folder: Path) -> str:
    """Returns shell text that calls the function in the job's Python.

    That is the first ``python3`` on the path, or if that one has no tidewheel, the one that the
    worker names. Files in the workflow's folder are kept with a run, and found in the folder
    of the run.
    """
    module, name = function.__module__, shlex.quote(task)
    if "." in module:
        return f"{PYTHON} -m {CALLER} {shlex.quote(module)} {name}"
    file = Path(function.__code__.co_filename).absolute()
    if not file.is_relative_to(folder):
        return f"{PYTHON} -m {CALLER} {shlex.quote(str(file))} {name}"
    inside = shlex.quote(file.relative_to(folder).as_posix())
    return f'{PYTHON} -m {CALLER} "${RUN_DIRECTORY}"/{inside} {name}'


# ---- arguments, when the workflow is defined ----

_TWO_TASKS = "make two tasks: both can use the same function"


class TaskValue(TermLeaf):
    """Names one of the values that a task returns, as an argument for another task."""

    __slots__ = ("value_name",)

    def __init__(self, ledger: StatementLog, mention: Mention, value_name: str) -> None:
        super().__init__(ledger, mention)
        if not _VALUE_NAME.fullmatch(value_name):
            seen = f"{value_name!r} is not a valid name of a value: {self.mention}.value(…)"
            raise BadStatement(seen, "names have letters, digits, _ and -")
        self.value_name = value_name

    def __str__(self) -> str:
        return f"{self.mention}.value({self.value_name!r})"


_VALUE_NAME = re.compile(r"[\w-]+")


def bind(task: Task, args: tuple[object, ...], keywords: Mapping[str, object]) -> None:
    """Records that a task is called with these arguments: tasks are before it in the graph."""
    given = _given(task, args, keywords)
    if task.name in task.ledger.mapped:
        seen = f"{task} is mapped over a list, and called once as well"
        raise BadStatement(seen, _TWO_TASKS)
    _record(task, given)


def _given(
    task: Task, args: tuple[object, ...], keywords: Mapping[str, object]
) -> dict[str, object]:
    """Returns the arguments of a call by parameter; BadStatement if they do not fit."""
    function = task.ledger.functions.get(task.name)
    if function is None:
        seen = f"{task} is called with arguments, and has no function"
        raise BadStatement(seen, f"put @flow.task above a function {task}, or order it with >>")
    signature = inspect.signature(function)
    try:
        given = signature.bind(*args, **keywords).arguments
    except TypeError as error:
        seen = f"{task} cannot be called like this: {error}"
        raise BadStatement(seen, f"its function is {task}{signature}") from None
    _check_given(task, signature, given)
    return dict(given)


def _record(task: Task, given: dict[str, object]) -> None:
    ledger = task.ledger
    known = ledger.arguments.setdefault(task.name, given)
    if _compared(known) != _compared(given):
        seen = f"{task} is called a second time, with other arguments"
        raise BadStatement(seen, _TWO_TASKS)
    _place(task, [_checked(task, name, one) for name, one in given.items() if _is_term(one)])


def _place(task: Task, parents: list[TermLeaf]) -> None:
    """Records that a task comes after others, in the open cycle or once."""
    ledger = task.ledger
    opened = ledger.current is None
    if opened:
        ledger.called_outside = ledger.called_outside or written_at()
        ledger.open(RUN_ONCE)
    try:
        for parent in parents:
            _ = Statement.beginning(parent) >> task
        if not parents:
            Statement.beginning(task).place()
    finally:
        if opened:
            ledger.current = None


def bind_map(
    task: Task,
    args: tuple[object, ...],
    keywords: Mapping[str, object],
    elements_max: int | None,
) -> None:
    """Records that a task is run for each element of a list: the first argument of the call."""
    ledger = task.ledger
    function = ledger.functions.get(task.name)
    if not args and not keywords:
        seen = f"{task}.map() is given no list"
        raise BadStatement(seen, f"give it the task that returns the list: {task}.map(find())")
    name, first = next(iter(keywords.items())) if not args else ("", args[0])
    source = _source(task, first)
    if function is None:
        if len(args) + len(keywords) > 1:
            seen = f"{task}.map(…) has several arguments, and {task} has no function"
            hint = f"give the list alone; other values are inputs: flow.task({task.name!r}, "
            raise BadStatement(seen, hint + "inputs={'X': 'other.name'})")
        _set_mapped(task, MappedCall(_list_of(task, source, name, elements_max)))
        _place(task, [source])
        return
    given = _given(task, args, keywords)
    name = name or next(iter(given))
    if elements_max is not None and "max" in inspect.signature(function).parameters:
        seen = f"{task}.map(max=…): the function {task} has a parameter max, too"
        raise BadStatement(seen, "rename that parameter of the function")
    over = _list_of(task, source, name, elements_max)
    _check_one_list(task, over, given)
    _set_mapped(task, MappedCall(over, name, is_element=source.mention.name == over.source))
    _record(task, given)


def _source(task: Task, value: object) -> TermLeaf:
    """Returns the task that the first argument of `map` names; BadStatement if it is none."""
    if not _is_term(value):
        seen = f"{task}.map({value!r:.60}): expected a task that returns a list"
        hint = "write a task that returns the list, and give the call of this task to map: "
        example = (
            f"@flow.task above 'def find(): return {value!r:.60}', then {task}.map(find())"
        )
        raise BadStatement(seen, hint + example)
    source = _checked(task, "…", value)
    if source.mention.offset is not None:
        seen = f"{task}.map({source}): the list belongs to another cycle point"
        hint = f"write a task that takes {source} and returns it, and map over that task"
        raise BadStatement(seen, hint)
    if source.mention.reach:
        seen = f"{task}.map({source}) maps over all elements at once"
        raise BadStatement(seen, f"write {task}.map({source.mention.name})")
    return source


def _list_of(
    task: Task, source: TermLeaf, argument: str, elements_max: int | None
) -> MappedList:
    """Returns the list of a source, or that over which the source is mapped itself."""
    ledger, name = task.ledger, source.mention.name
    if source.ledger is not ledger:
        seen = f"{source} belongs to the workflow {source.ledger.workflow!r}"
        raise BadStatement(seen, f"map over a task of {ledger.workflow!r}")
    has_function = task.name in ledger.functions
    if name in ledger.mapped:
        over = ledger.mapped[name].over
    else:
        value = source.value_name if isinstance(source, TaskValue) else RETURN
        known = ledger.lists.get((name, value))
        if known is None and not has_function and not argument:
            seen = f"{task}.map({source}) names no variable for the element"
            raise BadStatement(seen, f"name it: {task}.map(file={source})")
        over = known or _new_list(ledger, source, value, argument, is_fixed=not has_function)
    if argument and not has_function and argument != over.parameter:
        seen = f"{task}.map({argument}=…): an element of this list is called {over.parameter}"
        hint = f"elements of one list have one name: write {task}.map({over.parameter}=…)"
        raise BadStatement(seen, hint)
    if elements_max is not None:
        _bound(task, over, elements_max)
    return over


def _new_list(
    ledger: StatementLog, source: TermLeaf, value: str, argument: str, *, is_fixed: bool
) -> MappedList:
    """Returns a list with a parameter of its own, called as the argument if that is free."""
    try:
        read_parameter(f"{source.mention.name}.{value}")
    except BadValue:
        seen = f"{source.mention.name} cannot be the name of a task that returns a list"
        raise BadStatement(seen, "begin the name with a letter from A to Z") from None
    taken = {one.parameter for one in ledger.lists.values()} | TASK_PARAMETERS.entries.keys()
    name = _NO_VARIABLE.sub("_", argument)
    if is_fixed and (name != argument or name in taken or name[-1:].isdigit()):
        seen = f"the elements of {source} cannot be called {argument}"
        why = "that name is taken" if name in taken else "its last character is a digit"
        why = why if name == argument else "it has characters that no variable can have"
        raise BadStatement(seen, f"{why}; choose another name")
    if name in taken:
        name = f"{name}_of_{_NO_VARIABLE.sub('_', source.mention.name)}"
    while name in taken or name[-1:].isdigit():
        name += "_"
    made = MappedList(name, source.mention.name, value)
    ledger.lists[made.source, value] = made
    return made


_NO_VARIABLE = re.compile(r"[^0-9A-Za-z_]")


def _bound(task: Task, over: MappedList, elements_max: int) -> None:
    if isinstance(elements_max, bool) or not 0 < elements_max <= ELEMENTS_MAX:
        seen = f"{task}.map(max={elements_max!r}) is not a valid maximum"
        raise BadStatement(seen, f"write how many elements there may be, 1 to {ELEMENTS_MAX}")
    if over.elements_max not in (None, elements_max):
        seen = f"{task}.map(max={elements_max}): the list has max={over.elements_max} already"
        raise BadStatement(seen, "tasks that are mapped over one list need the same max")
    over.elements_max = elements_max


def _check_one_list(task: Task, over: MappedList, given: Mapping[str, object]) -> None:
    for name, one in given.items():
        if not isinstance(one, TermLeaf):
            continue
        call = task.ledger.mapped.get(one.mention.name)
        if call is None:
            continue
        said = one.mention
        if call.over is not over or said.offset is not None or said.reach:
            seen = f"{task}.map({name}={one}): {one} are elements of another list or point"
            hint = f"write a task that gathers these values, and give its call: gathered({one})"
            raise BadStatement(seen, hint)


def _set_mapped(task: Task, call: MappedCall) -> None:
    ledger = task.ledger
    if ledger.mapped.get(task.name, call) != call:
        seen = f"{task} is mapped a second time, over another list or argument"
        raise BadStatement(seen, _TWO_TASKS)
    if task.name not in ledger.mapped and task.name in ledger.arguments:
        seen = f"{task} is called once, and mapped over a list as well"
        raise BadStatement(seen, _TWO_TASKS)
    if any(one.source == task.name for one in ledger.lists.values()):
        seen = f"{task}.map(…) comes after another task is mapped over {task}"
        hint = f"map the other task over the call: other.map({task}.map(…))"
        raise BadStatement(seen, hint)
    ledger.mapped[task.name] = call


def node_of(ledger: StatementLog, task: str) -> str:
    """Returns what a task is called in the graph: a mapped one is process<file>."""
    call = ledger.mapped.get(task)
    return task if call is None else template_name(task, call.over.parameter)


def task_of(ledger: StatementLog, node: str) -> str:
    """Returns the task of a node of the graph, or of an element of one."""
    for task in ledger.mapped:
        whole = node_of(ledger, task)
        if node == whole or node.rstrip("0123456789") == element_name(whole, 0)[:-1]:
            return task
    return node


def _check_given(task: Task, signature: inspect.Signature, given: Mapping[str, object]) -> None:
    """Raises BadStatement if a job could not give one of these arguments."""
    for name, value in given.items():
        if (one := signature.parameters[name]).kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            seen = f"{task} is given arguments for {one}, but a job needs their names"
            raise BadStatement(seen, "write each parameter of the function by name")
        if not _is_term(value) and _hides_a_task(value):
            seen = f"{task}({name}=…): a task is inside the value, where it is not recognized"
            raise BadStatement(seen, "give each task as a separate argument")


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
    if not is_task or said.output not in (None, SUCCEEDED) or said.reach == "any":
        seen = f"{task}({name}={value}): {value} has no value"
        raise BadStatement(seen, "give a task, or a task at another point: model[-1]")
    if _is_indexed_by_0(value):
        seen = f"{task}({name}={value}[0]): [0] is this cycle point, not an element of a list"
        raise BadStatement(seen, f"give {value}, and take the element in the function {task}")
    return value


def _is_indexed_by_0(value: TermLeaf) -> bool:
    is_plain = value.mention == Mention(value.mention.name)
    return is_plain and not isinstance(value, Named | TaskValue)


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
            seen = f"the function {name} is called without {', '.join(lacking)}"
            places = ", ".join("…" for _ in lacking)
            hint = f"call it with the tasks that return these values: {name}({places})"
            findings.error("missing-argument", seen, hint, position)
        for parameter, value in given.items():
            if isinstance(value, str) and "{{" in value and "}}" in value:
                findings.warning(
                    "template-in-argument",
                    f"{name}({parameter}={value!r}): the function gets this text as it is, for "
                    "no template is filled in",
                    "read the cycle point in the function: "
                    'os.environ["TIDEWHEEL_TASK_CYCLE_POINT"]',
                    position,
                )
        inputs = {one: value for one, value in given.items() if isinstance(value, TermLeaf)}
        for parameter, parent in inputs.items():
            if wrong := _wrong_type(ledger, name, parameter, parent):
                called = f"{name}.map" if name in ledger.mapped else name
                findings.error(
                    "wrong-type", f"{called}({parameter}={parent}): {wrong}", "", position
                )
        references = {
            f"{ARGUMENT}{one}": _reference(ledger, value)
            for one, value in inputs.items()
            if not is_element(ledger, name, one)
        }
        if references:
            found[name] = references
    return found


def is_element(ledger: StatementLog, task: str, parameter: str) -> bool:
    """Says whether an argument is the element of a list, which each element has anyway."""
    call = ledger.mapped.get(task)
    return call is not None and call.is_element and call.argument == parameter


def is_gathered(ledger: StatementLog, task: str, value: TermLeaf) -> bool:
    """Says whether an argument is what all elements of a mapped task returned."""
    theirs, own = ledger.mapped.get(value.mention.name), ledger.mapped.get(task)
    return theirs is not None and (own is None or own.over is not theirs.over)


def missing_arguments(function: TaskFunction, given: Collection[str]) -> list[str]:
    """Returns the parameters that a function needs and is not given."""
    return [
        name
        for name, one in inspect.signature(function).parameters.items()
        if one.default is one.empty
        and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        and name not in given
    ]


def _reference(ledger: StatementLog, parent: TermLeaf) -> str:
    said = parent.mention
    offset = "" if said.offset is None else f"[{said.offset}]"
    path = f".{parent.value_name}" if isinstance(parent, TaskValue) else ""
    return f"{node_of(ledger, said.name)}{offset}{path}"


_PLAIN = (bool, int, float, str, list, dict)


def _wrong_type(ledger: StatementLog, task: str, parameter: str, parent: TermLeaf) -> str:
    """Returns what is wrong if both sides are annotated with plain types that differ."""
    giver = ledger.functions.get(parent.mention.name)
    if giver is None or isinstance(parent, TaskValue):
        return ""
    returned = hints_of(giver).get(RETURN)
    taken = hints_of(ledger.functions[task]).get(parameter)
    if is_element(ledger, task, parameter):
        if returned in _PLAIN and returned is not list:
            hint = f"; name the list: {parent}.value(NAME)" if returned is dict else ""
            return f"{parent} returns {_name(returned)}, not a list{hint}"
        return _difference(f"an element of {parent} is", _inner(returned), parameter, taken)
    if not is_gathered(ledger, task, parent):
        return _difference(f"{parent} returns", returned, parameter, taken)
    if taken in _PLAIN and taken is not list:
        return f"it gets a list of the values of {parent}, but {parameter} is {_name(taken)}"
    each = f"an element of {parameter}"
    return _difference(f"each {parent} returns", returned, each, _inner(taken))


def _difference(what: str, given: object, whom: str, taken: object) -> str:
    if given not in _PLAIN or taken not in _PLAIN or given is taken:
        return ""
    if (given, taken) == (int, float):
        return ""
    return f"{what} {_name(given)}, but {whom} is {_name(taken)}"


def _inner(kind: object) -> object:
    """Returns the type of the elements of list[…]; None if it is not known."""
    inner = typing.get_args(kind) if typing.get_origin(kind) is list else ()
    return inner[0] if inner else None


def _name(kind: object) -> str:
    return str(getattr(kind, "__name__", kind))


def hints_of(function: TaskFunction) -> dict[str, object]:
    """Returns the types that a function is annotated with; none if they cannot be found."""
    try:
        return typing.get_type_hints(function)
    except Exception:  # names that exist only for type checkers
        return {}
