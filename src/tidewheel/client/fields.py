"""Turns the words in which applications describe tasks into tasks and filters.

The same words are keyword arguments of ``submit``, keys of the dictionaries that
``submit_many`` takes, and keys of a line in ``tidewheel submit --file``. Durations and sizes
are numbers (seconds, bytes) or texts such as "10m" and "2GiB"; a duration may be a timedelta.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from datetime import timedelta
from difflib import get_close_matches
from typing import Annotated, Any, TypedDict, Unpack, get_origin, get_type_hints

from tidewheel.config import CONTAINER_RUNNERS, RUNNERS, SHELL
from tidewheel.core.queue.requests import Amendment, TaskFilter
from tidewheel.core.queue.resources import (
    NO_RESOURCES,
    FlavouredNodes,
    Resources,
    read_flavours,
    runner_label,
)
from tidewheel.core.queue.retry import Exponential, FixedDelays, RetryPolicy, retry_findings
from tidewheel.core.queue.secret_references import NO_SECRETS, is_reference
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.submission import ALIKE_MIN, number_findings
from tidewheel.core.queue.task import AlikeTasks, Need, NewTask, TaskId
from tidewheel.errors import BadSetting, InvalidTask
from tidewheel.exact_json import decode, encode
from tidewheel.quantities import parse_duration, parse_retries, parse_size
from tidewheel.runners.containers.stage_spec import stage_fields
from tidewheel.runners.slurm import directives as slurm
from tidewheel.vocabulary import Vocabulary, statuses_named


def for_runner(fields: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns ``given``, the stored fields of a task, as the runner in ``fields`` needs them.

    Raises ValueError with what is wrong. For Slurm, the resources that the task asks for become
    directives, because Slurm has them and not the worker that submits the job. So does its time
    limit, which Slurm counts from when the job begins.
    """
    runner, directives = fields.get("runner"), _directives(fields.get("directives"))
    if runner in (None, SHELL):
        if directives:
            raise ValueError("directives are for Slurm: set runner to slurm, or leave them out")
        return given
    if runner not in RUNNERS:
        raise ValueError(f"runner is {runner!r}; expected {SHELL} or {' or '.join(RUNNERS)}")
    if runner in CONTAINER_RUNNERS:
        return _for_containers(str(runner), fields, given)
    command = given.get("command")
    if command is None:
        raise ValueError(f"runner {runner} runs commands, and the task has no command")
    _require_no_secrets(str(runner), given)
    if finding := slurm.refusal(slurm.directive_lines(directives)) or slurm.refusal(
        slurm.head_lines(command)
    ):
        raise ValueError(finding)
    asked: Resources = given.get("resources", NO_RESOURCES)
    lines = [*slurm.directive_lines(directives), *slurm.head_lines(command)]
    limit = given.get("timeout_seconds")
    needed = slurm.resource_directives(asked, limit, slurm.names_of(lines))
    placed = {name: value for name, value in given.items() if name != "timeout_seconds"}
    return placed | {
        "command": slurm.with_directives(command, (*needed, *directives)),
        "resources": replace(NO_RESOURCES, labels=asked.labels | {runner_label(runner)}),
    }


def _for_containers(
    runner: str, fields: Mapping[str, Any], given: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Returns the fields of a stage: its spec names the runner and holds the compose file."""
    spec = decode(given["spec"]) if given.get("spec") is not None else {}
    if not isinstance(spec, dict):
        raise ValueError(f"the spec of a task for runner {runner} must be an object")
    compose = fields.get("compose") or spec.get("compose")
    if not compose or not isinstance(compose, str):
        raise ValueError(f"runner {runner} needs compose, the text of a compose file")
    asked: Resources = given.get("resources", NO_RESOURCES)
    _require_no_secrets(runner, given)
    rest = {name: one for name, one in given.items() if name != "environment"}
    if "environment" in given:
        own = spec.get("environment")
        said = json.loads(given["environment"])
        spec["environment"] = said | own if isinstance(own, dict) else said
    return rest | {
        **stage_fields(runner, compose, spec),
        "resources": replace(asked, labels=asked.labels | {runner_label(runner)}),
    }


def _require_no_secrets(runner: str, given: Mapping[str, Any]) -> None:
    if any(map(is_reference, json.loads(given.get("environment") or "{}").values())):
        raise ValueError(NO_SECRETS.format(runner=runner))


def _directives(given: object) -> slurm.Directives:
    match given:
        case None:
            return ()
        case Mapping():
            return tuple(
                (str(name), "" if value is None or value is True else str(value))
                for name, value in given.items()
            )
        case Sequence() if not isinstance(given, str):
            return tuple(_pair(one) for one in given)
        case _:
            raise ValueError(f"directives is {given!r}; expected a list or an object")


def _pair(given: object) -> tuple[str, str]:
    if not isinstance(given, str):
        raise ValueError(f"directives has {given!r}; expected a string NAME=VALUE")
    name, _, value = given.strip().partition("=")
    return name.strip(), value.strip()


# Fields of a task.

QUEUE_DEFAULT = "default"

Duration = float | str | timedelta
Size = int | str


class TaskFields(TypedDict, total=False):
    """Holds the fields that can be given for a new task; none is required.

    Fields with an explanation in their type are options of ``tidewheel submit``, and on the
    task's page.
    """

    id: str  # made by the client if it is not given
    name: str  # a name to find the task by; it must be unique in the store
    spec: object  # any value that JSON can express, as the input of the job
    spec_text: str  # the spec as JSON text, stored unchanged; replaces spec
    command: str  # a command for bash
    handler: str  # the name of a registered Python function
    priority: int  # 0 to 4294967295, higher first; 50 if it is not given
    delay: Duration  # how long the task waits before it becomes ready
    armed: bool  # False: the task waits until `arm` is called
    needs: Sequence[str | Sequence[str]]  # the tasks to wait for: ids, or pairs (id, output)
    continuations: Sequence[str]  # ids of tasks that have to wait for this task
    retries: int | str | timedelta | Sequence[Duration]  # how many retries, or their delays
    retry_delays: Sequence[Duration]  # item n is the delay before retry n; the last repeats
    backoff: Exponential | Mapping[str, float] | bool  # growing delays; instead of retry_delays
    max_lapses: int  # how many of its leases may lapse before the task fails
    timeout: Duration  # how long one attempt may run
    estimated_runtime: Duration  # how long the task is expected to run
    max_termination: Duration  # how long a cancelled job may take to end before it is killed
    cpu: float  # cores that one attempt uses
    memory: Size  # memory that one attempt uses
    gpu: int  # GPUs that one attempt uses
    labels: Iterable[str]  # labels that its worker must offer
    nodes: int  # machines that one attempt uses
    exclusive: bool  # whether no other task may run on its nodes at the same time
    buffer: Size  # buffer space that one attempt uses
    flavours: Sequence[
        FlavouredNodes | Mapping[str, Any]
    ]  # how many nodes of each flavour; replaces nodes and exclusive
    # All resources in one object; replaces the fields from cpu to flavours.
    resources: Resources
    runner: str  # shell, slurm, compose or swarm
    compose: str  # for compose and swarm: the text of a compose file
    directives: Mapping[str, object] | Sequence[str]  # for Slurm: {"--mem": "2G"}
    unique_key: str  # until the task ends, its queue accepts no other task with this key
    limit_key: Annotated[str, "Which of the queue's limits the task counts towards."]
    tag: Annotated[str, "A word to find the task by."]
    environment: Mapping[str, str]  # variables for its command; secret:NAME stands for a secret


_STORED = frozenset(one.name for one in dataclass_fields(NewTask))
_DURATIONS = {
    name: f"{name}_seconds"
    for name in TaskFields.__annotations__
    if f"{name}_seconds" in _STORED
}
# What is stored as it is given; of the rest a function below makes what is stored.
_PLAIN = {
    name: name
    for name in TaskFields.__annotations__
    if name in _STORED - {"id", "spec", "needs", "continuations", "resources", "environment"}
}
# The numbers that have another name in the store than where they are given.
_RENAMED = {"retries": "max_retries"} | _DURATIONS
_TEXTS = frozenset(
    {"queue"} | {name for name, kind in get_type_hints(TaskFields).items() if kind is str}
)
RESOURCE_FIELDS = ("cpu", "memory", "gpu", "labels", "nodes", "exclusive", "buffer", "flavours")
FIELD_NAMES = frozenset(TaskFields.__annotations__) | {"queue"}
# What other queues, and an option, call fields.
_OF_OTHERS = {"key": "unique_key", "args": "spec", "kwargs": "spec", "countdown": "delay"}


def new_task(queue: str, fields: Mapping[str, Any], new_id: Callable[[], str]) -> NewTask:
    """Returns the task that these fields describe; raises InvalidTask with every finding."""
    task_id = fields["id"] if fields.get("id") is not None else new_id()
    findings = _unknown_findings(fields) + _type_findings({**fields, "queue": queue})
    if findings:
        raise InvalidTask(str(task_id), findings)
    given: dict[str, Any] = {
        _PLAIN[name]: value
        for name, value in fields.items()
        if value is not None and name in _PLAIN
    }
    for build in dict.fromkeys(_BUILT_BY[name] for name in fields if name in _BUILT_BY):
        try:
            given |= build(fields)
        except (BadSetting, ValueError) as error:
            findings.append(str(error))
    if fields.get("runner") is not None or fields.get("directives"):
        try:
            given = dict(for_runner(fields, given))
        except ValueError as error:
            findings.append(str(error))
    if findings:
        raise InvalidTask(task_id, findings)
    task = NewTask(id=TaskId(task_id), queue=queue, **given)
    if not _RENAMED.keys().isdisjoint(fields) and (findings := _number_findings(task)):
        raise InvalidTask(task_id, findings)
    return task


def _number_findings(task: NewTask) -> list[str]:
    """Returns what is wrong with the numbers of a task, by the names under which they are
    given; the store, which looks again, knows only its own."""
    findings = number_findings(task)
    for given, stored in _RENAMED.items():
        findings = [re.sub(rf"^{stored}\b", given, finding) for finding in findings]
    return findings


def check_spec(task: NewTask) -> None:
    """Raises InvalidTask if the spec of a task is not JSON.

    A NewTask that an application made by itself may have such a spec.
    """
    if task.spec is not None:
        try:
            decode(task.spec)
        except ValueError as error:
            raise InvalidTask(task.id, [f"spec: {error}"]) from None


_AMENDABLE = {
    "name": "name",
    "command": "command",
    "retries": "max_retries",
    "estimated_runtime": "estimated_runtime_seconds",
    "max_termination": "max_termination_seconds",
    **dict.fromkeys((*RESOURCE_FIELDS, "resources"), "resources"),
}


def amendment(task_id: str, fields: Mapping[str, Any]) -> Amendment:
    """Returns the changes to a waiting task, checked as for a new one.

    Raises InvalidTask for fields that cannot be changed.
    """
    if not isinstance(fields.get("retries"), int | None):
        accepted = "a whole number; the delays cannot be changed"
        raise InvalidTask(task_id, [f"retries is {fields['retries']!r}; expected {accepted}"])
    fixed = [name for name in fields if name in FIELD_NAMES and name not in _AMENDABLE]
    if fixed:
        known = ", ".join(_AMENDABLE)
        raise InvalidTask(
            task_id, [f"{name} cannot be changed; {known} can be" for name in fixed]
        )
    task = new_task(QUEUE_DEFAULT, fields, lambda: task_id)
    return Amendment(
        **{ours: getattr(task, ours) for name, ours in _AMENDABLE.items() if name in fields}
    )


def _unknown_findings(fields: Mapping[str, Any]) -> list[str]:
    if fields.keys() <= FIELD_NAMES:
        return []
    known = "the fields are " + ", ".join(sorted(FIELD_NAMES))
    findings = []
    for name in [one for one in fields if one not in FIELD_NAMES]:
        near = get_close_matches(_OF_OTHERS.get(name, str(name)), FIELD_NAMES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else known
        findings.append(f"there is no field {name!r}; {hint}")
    return findings


def _type_findings(fields: Mapping[str, Any]) -> list[str]:
    wrong = [
        name
        for name, value in fields.items()
        if value is not None
        and name in _KINDS
        and type(value) not in _KINDS[name]  # as nearly all are
        and not _is_of(value, _KINDS[name])
        and (name != "cpu" or value)
    ]
    return [
        f"{name} is {fields[name]!r}; expected {accepted}"
        for accepted, names, _ in _ACCEPTED
        for name in wrong
        if name in names
    ]


_ACCEPTED: tuple[tuple[str, Collection[str], tuple[type, ...]], ...] = (
    ("a string", _TEXTS, (str,)),
    ("true or false", ("armed", "exclusive"), (bool,)),
    ("a number", ("cpu",), (int, float)),
    ("a whole number", ("gpu", "nodes"), (int,)),
)


_KINDS = {name: kinds for _, names, kinds in _ACCEPTED for name in names}


def _is_of(value: object, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _spec(fields: Mapping[str, Any]) -> dict[str, str]:
    """Returns the field ``spec`` with its JSON text, or nothing if no spec is given. A spec of
    None is JSON's null, which is a value; without the field there is no spec."""
    if "spec" in fields and fields.get("spec_text") is not None:
        raise ValueError("it has both spec and spec_text; give one of them")
    try:
        if fields.get("spec_text") is not None:
            decode(fields["spec_text"])
            return {"spec": fields["spec_text"]}
        return {"spec": encode(fields["spec"])} if "spec" in fields else {}
    except ValueError as error:
        raise ValueError(f"spec: {error}") from None


def _environment(fields: Mapping[str, Any]) -> dict[str, str]:
    given = fields["environment"]
    if not given:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(f'environment is {given!r}; expected an object: {{"NAME": "VALUE"}}')
    return {"environment": json.dumps(dict(given), sort_keys=True)}


def _durations(fields: Mapping[str, Any]) -> dict[str, float]:
    return {
        ours: parse_duration(fields[theirs], theirs)
        for theirs, ours in _DURATIONS.items()
        if fields.get(theirs) is not None
    }


def _edges(fields: Mapping[str, Any]) -> dict[str, Any]:
    needs, continuations = _listed(fields, "needs"), _listed(fields, "continuations")
    for one in continuations:
        if not isinstance(one, str):
            raise ValueError(f"continuations has {one!r}; expected task ids")
    return {
        "needs": tuple(map(_need, needs)),
        "continuations": tuple(map(TaskId, continuations)),
    }


def _listed(fields: Mapping[str, Any], name: str) -> Sequence[Any]:
    values = fields.get(name) or ()
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise ValueError(f"{name} is {values!r}; expected a list")
    return values


def _need(given: object) -> Need:
    match given:
        case str():
            return Need(task_id=TaskId(given))
        case [str(task_id), str(output)]:
            return Need(task_id=TaskId(task_id), output=output)
        case _:
            accepted = "task ids, or pairs of a task id and an output"
            raise ValueError(f"needs has {given!r}; expected {accepted}")


def _retry(fields: Mapping[str, Any]) -> dict[str, Any]:
    given = {name for name in ("retry_delays", "backoff") if fields.get(name)}
    if len(given) > 1:
        raise ValueError("it has both retry_delays and backoff; give one of them")
    built: dict[str, Any] = {}
    if fields.get("retries") is not None:
        retries = parse_retries(fields["retries"])
        if not isinstance(retries, int):
            if given:
                other = given.pop()
                raise ValueError(f"it has delays in both retries and {other}; give one of them")
            return {"max_retries": len(retries), **_fixed_delays("retries", retries or (0.0,))}
        built["max_retries"] = retries
    if fields.get("retry_delays") is not None:
        listed = _listed(fields, "retry_delays")
        seconds = tuple(parse_duration(one, "retry_delays") for one in listed)
        return built | _fixed_delays("retry_delays", seconds)
    return built | _backoff(fields.get("backoff"))


def _fixed_delays(name: str, seconds: tuple[float, ...]) -> dict[str, RetryPolicy]:
    policy = FixedDelays(seconds=seconds)
    if findings := retry_findings(policy):
        raise ValueError(findings[0].replace("retry", name, 1))
    return {"retry": policy}


def _backoff(backoff: object) -> dict[str, RetryPolicy]:
    match backoff:
        case None | False:
            return {}
        case True:
            return {"retry": Exponential()}
        case Exponential():
            return {"retry": backoff}
        case Mapping():
            return {"retry": _exponential(backoff)}
        case _:
            raise ValueError(f"backoff is {backoff!r}; expected true or an object")


def _exponential(given: Mapping[str, Any]) -> Exponential:
    known = Exponential.__slots__
    for name, value in given.items():
        if name not in known:
            raise ValueError(
                f"backoff has no field {name!r}; the fields are {', '.join(known)}"
            )
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"backoff {name} is {value!r}; expected a number")
    return Exponential(**given)


def _resources(fields: Mapping[str, Any]) -> dict[str, Resources]:
    whole = fields.get("resources")
    if whole is not None:
        if not isinstance(whole, Resources):
            known = ", ".join(RESOURCE_FIELDS)
            raise ValueError(
                f"resources is not a Resources object; give one, or any of {known}"
            )
        if more := [name for name in RESOURCE_FIELDS if fields.get(name) is not None]:
            raise ValueError(f"resources is given, and {', '.join(more)}, too; leave out one")
        return {"resources": whole}
    if all(fields.get(name) is None for name in RESOURCE_FIELDS):
        return {}
    labels = fields.get("labels") or ()
    if isinstance(labels, str) or not all(isinstance(label, str) for label in labels):
        raise ValueError(f"labels is {labels!r}; expected a list of strings")
    flavours = read_flavours(fields.get("flavours") or ())
    every = next((one for one in flavours if not one.flavour), None)
    if every is not None and fields.get("nodes") not in (None, every.nodes):
        raise ValueError(f"nodes is {fields['nodes']!r}, but flavours have {every.nodes} nodes")
    nodes = fields.get("nodes") if every is None else every.nodes
    return {
        "resources": Resources(
            cpu=float(fields.get("cpu") or 0.0),
            memory_bytes=parse_size(fields.get("memory") or 0, "memory"),
            gpu=fields.get("gpu") or 0,
            labels=frozenset(labels),
            nodes=1 if nodes is None else nodes,
            exclusive=bool(every.idle if every is not None else fields.get("exclusive")),
            buffer_bytes=parse_size(fields.get("buffer") or 0, "buffer"),
            flavours=flavours,
        )
    }


# Which function builds what is stored for a field. Most tasks have few fields, so only the
# functions of those that are given are called.
_BUILT_BY: dict[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
    **dict.fromkeys(("spec", "spec_text"), _spec),
    **dict.fromkeys(_DURATIONS, _durations),
    **dict.fromkeys(("needs", "continuations"), _edges),
    "environment": _environment,
    **dict.fromkeys(("retries", "retry_delays", "backoff"), _retry),
    **dict.fromkeys(("resources", *RESOURCE_FIELDS), _resources),
}


# Tasks that say the same.
#
# Whoever submits a thousand tasks mostly says one thing a thousand times, perhaps each with an
# id and a spec of its own. Then the fields are read and checked once, and nothing is made for
# each task but its id and the text of its spec. All other submissions go the long way, which
# also words what is wrong with a task.

_OWN = ("id", "spec")  # which each task may have of its own
# What ties a task to others, and what needs a look of its own.
_NOT_SHARED = frozenset(
    (
        *("name", "unique_key", "needs", "continuations", "armed"),
        *("spec_text", "runner", "compose", "directives"),
    )
)
_SHARED = FIELD_NAMES - _NOT_SHARED - set(_OWN)
_SIMPLE = frozenset((str, int, float, bool))


def alike_tasks(
    tasks: Sequence[NewTask | Mapping[str, Any]], new_ids: Callable[[int], Sequence[str]]
) -> AlikeTasks | None:
    """Returns the tasks that these fields describe if they say the same but for their ids and
    specs; None if they do not, or if anything is wrong with them."""
    if not isinstance(tasks, list | tuple) or len(tasks) < ALIKE_MIN:
        return None
    first = tasks[0]
    if not isinstance(first, dict):
        return None
    own = [name for name in _OWN if name in first]
    if not _say_the_same(tasks, own):
        return None
    given = {name: [task[name] for task in tasks] for name in own}
    ids: Sequence[Any] = given["id"] if "id" in own else new_ids(len(tasks))
    shared = {name: value for name, value in first.items() if name not in own}
    try:
        specs = list(map(encode, given["spec"])) if "spec" in own else None
        said = new_task(shared.pop("queue", QUEUE_DEFAULT), shared, lambda: ids[0])
    except (InvalidTask, ValueError):
        return None
    if {*map(type, ids)} != {str} or (specs is None and not said.executes):
        return None
    return AlikeTasks(said, ids, specs, ids_are_new="id" not in own, specs_are_json=True)


def _say_the_same(tasks: Sequence[Any], own: Sequence[str]) -> bool:
    """Says whether tasks have the same fields, simple and shared ones, but for their own."""
    first = tasks[0]
    shared = {name: value for name, value in first.items() if name not in own}
    if not (shared.keys() <= _SHARED and _SIMPLE.issuperset(map(type, shared.values()))):
        return False
    # True and 1 are equal, and so are 1 and 1.0, but not everywhere the same is accepted.
    numbers = [(name, type(one)) for name, one in shared.items() if type(one) is not str]
    blank = dict.fromkeys(own)
    whole = {**shared, **blank}
    for task in tasks:
        if task is first:
            continue
        if not isinstance(task, dict) or len(task) != len(whole) or {**task, **blank} != whole:
            return False
        if numbers and any(type(task[name]) is not kind for name, kind in numbers):
            return False
    return True


# Filters of tasks.


class Filters(TypedDict, total=False):
    """Holds the filters by which tasks are found: all that are given must match.

    None matches all tasks. Filters with an explanation in their type are options of ``tidewheel
    tasks``, ``cancel`` and ``export``.
    """

    status: str | Sequence[str] | None  # with this status, or with one of these
    queue: Annotated[str | None, "in this queue"]
    worker: Annotated[str | None, "of this worker, such as worker-7"]
    tag: Annotated[str | None, "with this tag"]
    name: Annotated[str | None, "with this name"]
    matching: Annotated[str | None, "that fit a filter, such as 'img-*:failed'"]
    estimated_runtime_seconds_max: float | None  # with at most this estimated runtime
    memory_bytes_min: int | None  # that ask for at least this many bytes of memory
    jobs: bool | None  # False: without tasks that belong to runs
    vocabulary: Vocabulary | str  # the system whose word `status` is: tidewheel, scylla, banyan


def explained(form: type[TaskFields | Filters]) -> dict[str, str]:
    """Returns the explanations in the types of a form's fields, by the name of the field."""
    hints = get_type_hints(form, include_extras=True)
    return {
        name: hint.__metadata__[0]
        for name, hint in hints.items()
        if get_origin(hint) is Annotated
    }


def task_filter(**which: Unpack[Filters]) -> TaskFilter:
    """Returns the filters as the store takes them; raises TypeError for an unknown one."""
    if unknown := which.keys() - Filters.__annotations__.keys():
        # A filter that is not heard would find, or cancel, too much.
        raise TypeError(f"there is no filter {sorted(unknown)[0]!r}")
    status = which.get("status")
    others: dict[str, Any] = {
        name: one for name, one in which.items() if name not in ("status", "vocabulary")
    }
    if others.get("matching") is not None:
        from tidewheel.core.queue.filters import read_filter  # noqa: PLC0415 - few do

        read_filter(others["matching"], [*Status])  # refused before anything is asked
    words = [status] if isinstance(status, str) else status
    vocabulary = Vocabulary(which.get("vocabulary", Vocabulary.TIDEWHEEL))
    return TaskFilter(statuses=statuses_named(words, vocabulary) if words else None, **others)
