"""Selection finds the tasks of a run that an id means (SEMANTICS §8).

A plain name at an explicit point is that task, in the pool or not. A glob, a family or a status
takes what is pooled; with `all_at_point` a glob or family at an explicit point also takes what
is not. An id that means nothing is refused, with what would mean something.

People name tasks as `2/foo`, the seeds' `foo.2`, globs, `*/foo:failed`: `read_id` takes such a
text apart. In a run of stages nobody has written a point: `image`, `image:failed`, `image/02`
mean the stage of this name, and of a stage with for_each all of its elements. Points are
written as the run writes them, as dates, `^` and `$`: a date may be shortened from its end
(`2000`, `20000101`, `2000-01-01T06`), with or without dashes and colons, with or without a time
zone; without one it is in the run's own. A prerequisite of a task is named as the task that it
needs, with an output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TypeVar

from tidewheel.core.cycling.calendar import (
    HOURS_PER_DAY,
    MONTHS_PER_YEAR,
    SECONDS_PER_DAY,
    SECONDS_PER_HOUR,
    SECONDS_PER_MINUTE,
    BadCycling,
    Calendar,
    Point,
    days_from_date,
    days_in_month,
)
from tidewheel.core.cycling.style import PointStyle
from tidewheel.core.graph.definition import CyclingDef
from tidewheel.core.graph.findings import nearest
from tidewheel.core.graph.outputs import SUCCEEDED, standard_name
from tidewheel.core.graph.shown_names import stage_text
from tidewheel.core.queue.submission import is_glob
from tidewheel.core.sched.dependency_index import AtomMeaning, IndexedNode
from tidewheel.core.sched.elements import nodes_at, size_at
from tidewheel.core.sched.evaluation import members_at
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.task_state import JobPhase, Key, PooledTask, PoolState, VerdictKind
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import NamedTuple, pattern

IDS_MAX = 10_000  # of one command
NAMED_MAX = 5  # tasks in one sentence

Given = TypeVar("Given", bound=Hashable)
Meant = TypeVar("Meant")


def select(
    pool: TaskPool,
    texts: Iterable[str],
    *,
    all_at_point: bool | None = None,
    pooled_only: bool = False,
    also: Iterable[Key] = (),
) -> tuple[Key, ...]:
    """Returns the tasks that these ids mean, in order, each once; raises Refused for none.

    `all_at_point` is None if nobody can ask for that. `also` are tasks that count as pooled.
    """
    texts = list(texts)
    if not texts:
        raise Refused(f"no task was named; write {_HOW_NAMED[pool.plan.is_of_stages]}")
    if len(texts) > IDS_MAX:
        raise Refused(
            f"{len(texts)} ids in one command; at most {IDS_MAX} are accepted: use patterns"
        )
    extra = [key for key in also if key not in pool.tasks]

    def meant(text: str) -> set[Key]:
        written = read_id_of(pool, text)
        return _matching(pool, written, extra, all_at_point, pooled_only)

    return tuple(sorted(set[Key]().union(*unrefused(pool, texts, meant)[0])))


def unrefused(
    pool: TaskPool, given: Iterable[Given], meaning: Callable[[Given], Meant]
) -> tuple[list[Meant], dict[Given, str]]:
    """Returns what each of the given means; raises Refused for one that means nothing.

    Where the policy leaves out what is not there, it raises only if all mean nothing, and also
    returns why the others do.
    """
    found, refusals = [], {}
    for one in given:
        try:
            found.append(meaning(one))
        except Refused as refused:
            if not pool.plan.policy.leaves_out_what_is_not_there:
                raise
            refusals[one] = refused
    if refusals and not found:
        raise next(iter(refusals.values()))
    return found, {one: str(refused) for one, refused in refusals.items()}


def unmeaning(
    pool: TaskPool, texts: Iterable[str], meaning: Callable[[str], object]
) -> dict[str, str]:
    """Returns the texts that mean nothing, where the policy leaves these out, and why."""
    if not pool.plan.policy.leaves_out_what_is_not_there or not (texts := [*texts]):
        return {}
    with suppress(Refused):  # of all of them
        return unrefused(pool, texts, meaning)[1]
    return {}


def unique_key(pool: TaskPool, text: str, *, pooled_only: bool = False) -> Key:
    """Returns the one task that an id names, else raises Refused.

    Such an id is a plain name at an explicit point.
    """
    written = read_id_of(pool, text)
    if not (written.has_plain_point and written.has_plain_name):
        example = "image" if pool.plan.is_of_stages else "2/foo"
        raise Refused(f"{text!r} must name one task, such as {example}")
    return _plain(pool, written, pooled_only)


def named_tasks(pool: TaskPool, command: object) -> list[Key]:
    """Returns the tasks that a command names at explicit points; empty if there are none."""
    found: list[Key] = []
    for text in getattr(command, "ids", ()):
        with suppress(Refused):
            written = read_id_of(pool, text)
            if written.has_plain_point:
                point = read_point(pool.plan.graph.cycling, written.point)
                there = nodes_at(pool, point)
                found += [(point, node.name) for node in there if _fits(node, written)]
    return found


def job_of(pool: TaskPool, text: str) -> tuple[Key, int | None]:
    """Returns the task that `POINT/NAME[/SUBMIT]` names, and its submit number if given."""
    return unique_key(pool, text), read_id_of(pool, text).submit


EVERYTHING = "all"
XTRIGGER = "xtrigger/"


def find_prerequisite(pool: TaskPool, key: Key, text: str) -> AtomMeaning | list[str] | None:
    """Returns the prerequisite that a text names; raises Refused if the task does not have it.
    `POINT/NAME[:OUTPUT]` is an atom, `xtrigger/LABEL` a list of labels, and `all` is None."""
    if text == EVERYTHING:
        return None
    if text.startswith(XTRIGGER):
        return _labels(pool, key, text.removeprefix(XTRIGGER))
    return _atom(pool, key, text)


def _labels(pool: TaskPool, key: Key, text: str) -> list[str]:
    """Returns the label of the xtrigger that is named, or for `all` every one of the task."""
    node, point = pool.node(key[1]), key[0]
    known = [label for sequence, label in node.xtriggers if sequence.has(point)]
    label = text.partition(":")[0]
    if label == EVERYTHING:
        return known
    if label not in known:
        has = f"it waits for {', '.join(known)}" if known else "it waits for no xtrigger"
        name = pool.plan.name_of(key)
        raise Refused(f"{name} does not wait for an xtrigger {label!r}; {has}")
    return [label]


def _atom(pool: TaskPool, key: Key, text: str) -> AtomMeaning:
    task, _, output = text.rpartition(":")
    if not task or "/" in output:
        task, output = text, SUCCEEDED
    known = {f"{pool.plan.word_of(one[:2])}:{one[2]}": one for one in _atoms_of(pool, key)}
    asked = f"{task}:{standard_name(output)}"
    if asked in known:  # also of a parent that the graph has not at this point
        return known[asked]
    point, name = unique_key(pool, task)
    wanted = (point, name, standard_name(output))
    asked = f"{pool.plan.word_of(wanted[:2])}:{wanted[2]}"
    if asked not in known:
        needs = f"it depends on {', '.join(known)}" if known else "it depends on nothing"
        raise Refused(f'{pool.plan.name_of(key)} does not depend on "{asked}"; {needs}')
    return wanted


def _atoms_of(pool: TaskPool, key: Key) -> Iterator[AtomMeaning]:
    """Yields every atom of a task's prerequisites, a family's as those of its members."""
    point, name = key
    for leaf, _ in pool.node(name).leaves_at(point):
        parent, group = leaf.parent_point(point, pool.plan.initial), leaf.group
        if group is None:
            yield (parent, leaf.node, leaf.output)
            continue
        members = members_at(pool, group, parent, frozenset(pool.flows))
        yield from ((parent, one, output) for one in members for output in group.outputs)


def split_texts(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from filter(None, (part.strip() for part in text.split(",")))


def _matching(
    pool: TaskPool,
    written: WrittenId,
    extra: list[Key],
    all_at_point: bool | None,
    pooled_only: bool,
) -> set[Key]:
    _refuse_unknown_names(pool, written)
    if written.has_plain_point and written.has_plain_name and written.name in pool.plan.nodes:
        key = _plain(pool, written, pooled_only)
        words = _words(pool, key)
        if not written.status or _any_fits(words, written.status):
            return {key}
        seen = " and ".join(words) or "not in the pool"
        raise Refused(f"{written.text}: {pool.plan.name_of(key)} is {seen}")
    pooled = _named(pool, written, pool.tasks)
    found = {
        key
        for key in pooled
        if not written.status or _any_fits(status_words(pool.tasks[key]), written.status)
    }
    found.update(_named(pool, written, extra))
    if all_at_point and not pooled_only and not written.status and written.has_plain_point:
        point = read_point(pool.plan.graph.cycling, written.point)
        there = nodes_at(pool, point)
        found |= {(point, node.name) for node in there if _fits(node, written)}
    if not found:
        _refuse_before_the_list(pool, written)
        raise Refused(_nothing_matches(pool, written, all_at_point, pooled_only))
    return found


def _refuse_before_the_list(pool: TaskPool, written: WrittenId) -> None:
    """Says of a mapped task at a point how many elements it has there."""
    tasks = next((one for one in pool.plan.mapped if written.name in one.templates), None)
    if tasks is None or not written.has_plain_point or written.status:
        return
    point = read_point(pool.plan.graph.cycling, written.point)
    source = pool.plan.name_of((point, tasks.over.source))
    size = size_at(pool, tasks, point, frozenset(pool.flows))
    if size is None and tasks.templates[written.name].is_at(point):
        raise Refused(
            f"there is no element of {written.text} yet: the number of elements is known when "
            f"{source} succeeds; name {source} instead"
        )
    if size == 0:
        raise Refused(f"there is no element of {written.text}: {source} returned an empty list")


def _plain(pool: TaskPool, written: WrittenId, pooled_only: bool) -> Key:
    point, name = read_point(pool.plan.graph.cycling, written.point), written.name
    _refuse_unknown_names(pool, written)
    node = pool.plan.nodes.get(name)
    if node is None:
        raise Refused(f"{written.text!r} names a family; one task is needed: POINT/NAME")
    if (point, name) in pool.tasks:
        return (point, name)
    text = pool.plan.name_of((point, name))
    if not node.is_at(point):
        raise Refused(f"there is no {text}: {name} {_where(pool, node, point)}")
    if pooled_only:
        raise Refused(f"{text} is not in the pool: it has ended, or has not entered it yet")
    return (point, name)


def _refuse_unknown_names(pool: TaskPool, written: WrittenId) -> None:
    nodes, families = pool.plan.nodes, pool.plan.graph.families
    if not written.name:
        style = pool.plan.graph.cycling.style
        is_point = is_glob(written.point) or written.point in (INITIAL, FINAL)
        if is_point or find_point(style, written.point) is not None:
            return
        if written.point in nodes or written.point in families:
            name = written.point
            raise Refused(f"{name} names no point; write POINT/{name}, or '*/{name}'")
        seen = f"{written.point!r} is neither a point nor a task of this run"
        if like := nearest(written.point, [*nodes, *families]):
            raise Refused(f"{seen}; did you mean POINT/{like}?")
        example = style.text(pool.plan.graph.cycling.initial)
        raise Refused(
            f"{seen}; points look like {example}, ^ or $, and task ids like POINT/NAME"
        )
    if not written.has_plain_name or written.name in nodes or written.name in families:
        return
    if written.name == "root":
        return
    mapped = {one.partition("<")[0]: one for one in pool.plan.graph.mapped}
    kind, known = "task", [*nodes]
    if pool.plan.is_of_stages:
        stages = (node.definition for node in nodes.values() if not node.definition.is_gate)
        kind, known = "stage", [stage_text(one) for one in stages]
    like = mapped.get(written.name) or nearest(written.name, [*known, *families])
    hint = f"; did you mean {like}?" if like else f"; there are {_some(known)}"
    raise Refused(f"there is no {kind} {written.name} in this workflow{hint}")


def _any_fits(words: Iterable[str], pattern: str) -> bool:
    return any(fnmatchcase(word, pattern) for word in words)


def _named(pool: TaskPool, written: WrittenId, keys: Iterable[Key]) -> Iterator[Key]:
    """Yields those of the tasks whose point and name fit what was written."""
    names = {node.name for node in _nodes(pool, written)}
    at = None
    if written.has_plain_point:
        at = read_point(pool.plan.graph.cycling, written.point)
    for key in keys:
        if key[1] in names and (
            key[0] == at
            if at is not None
            else fnmatchcase(pool.plan.text(key[0]), written.point)
        ):
            yield key


def _nodes(pool: TaskPool, written: WrittenId) -> Iterator[IndexedNode]:
    """Yields the nodes whose name, or that of a family of theirs, fits what was written."""
    return (node for node in pool.plan.nodes.values() if _fits(node, written))


def _fits(node: IndexedNode, written: WrittenId) -> bool:
    return _any_fits((node.name, *node.definition.lineage, "root"), written.name or "*")


def _words(pool: TaskPool, key: Key) -> tuple[str, ...]:
    """Returns the words for the status of a task, in the pool or not; empty if it never ran."""
    task = pool.tasks.get(key)
    if task is not None:
        return status_words(task)
    memory = pool.recall(*key)
    if memory is None:
        return ()
    ended = (v.ended for v in memory.verdicts.values() if v.kind is VerdictKind.FINISHED)
    return tuple(dict.fromkeys(ended))


def _where(pool: TaskPool, node: IndexedNode, point: Point) -> str:
    """Returns a text with the points near this one at which a node runs."""
    before = [one.sequence.last_before(point) for one in node.sequences]
    last = max((one for one in before if one is not None), default=None)
    texts = [pool.plan.text(one) for one in (last, node.next_after(point)) if one is not None]
    return f"does not run there (nearest: {', '.join(texts)})" if texts else "runs at no point"


def _nothing_matches(
    pool: TaskPool, written: WrittenId, all_at_point: bool | None, pooled_only: bool
) -> str:
    said = f"no task in the pool matches {written.text}"
    names = {node.name for node in _nodes(pool, written)}
    near = sorted(key for key in pool.tasks if key[1] in names)
    if near:
        named = (
            f"{pool.plan.name_of(key)} ({status_words(pool.tasks[key])[0]})" for key in near
        )
        said += f"; there {'is' if len(near) == 1 else 'are'} {_some(named)}"
    hidden = all_at_point is False and not (pooled_only or written.status)
    if hidden and written.has_plain_point:
        said += "; --all-at-point also selects tasks that are not in the pool"
    return said


def _some(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more


_SUBMIT_PARTS = 3  # POINT/NAME/SUBMIT

# Every word by which tasks can be chosen, and what is accepted in its place.
STATUS_WORDS = (
    "waiting",
    "held",
    "runahead",
    "ready",
    "pending",
    "blocked",
    "active",
    "preparing",
    "submitted",
    "running",
    "incomplete",
    "succeeded",
    "failed",
    "submit-failed",
    "expired",
)
_OTHER_WORDS = {"queued": "ready", "unreleased": "runahead"}

_OF_STANDING = {
    PoolState.UNRELEASED: "runahead",
    PoolState.PENDING: "pending",
    PoolState.READY: "ready",
    PoolState.BLOCKED: "blocked",
}


class WrittenId(NamedTuple):
    """Holds an id as it was written: `name` "" is each task of a point; `status` "" is any."""

    text: str
    point: str
    name: str
    status: str = ""
    submit: int | None = None

    @property
    def has_plain_point(self) -> bool:
        return not is_glob(self.point)

    @property
    def has_plain_name(self) -> bool:
        return bool(self.name) and not is_glob(self.name)


_HOW_NAMED = {
    False: "POINT/NAME, such as 2/foo or '*/foo:failed'",
    True: "the name of a stage, such as image or 'image:failed'",
}


def read_id_of(pool: TaskPool, text: str) -> WrittenId:
    """Reads an id of a run: as `read_id`, and in a run of stages also `STAGE[:STATUS]` and
    `STAGE/SUBMIT`."""
    plan = pool.plan
    if not plan.is_of_stages:
        return read_id(text)
    written = text.strip().removeprefix("//").rstrip("/")
    head, slash, _ = written.partition("/")
    point = plan.text(plan.initial)
    points = (point, INITIAL, FINAL)
    has_point = head.partition(":")[0] in points if not slash else head in points
    has_point = has_point or bool(slash and is_glob(head))
    if written and (written in plan.nodes or not has_point):
        written = f"{point}/{written}"
    found = read_id(written)._replace(text=text)
    mapped = {one.partition("<")[0]: one for one in plan.graph.mapped}
    return found._replace(name=mapped.get(found.name, found.name))


def read_id(text: str) -> WrittenId:
    """Reads `POINT/NAME[:STATUS]`, `POINT/NAME/SUBMIT`, `NAME.POINT` or `POINT`."""
    written = text.strip().removeprefix("//").rstrip("/")
    if not written:
        raise Refused(f"{text!r} is not a task id; write POINT/NAME, such as 2/foo")
    parts = written.split("/")
    if len(parts) > _SUBMIT_PARTS or not all(parts):
        raise Refused(f"{text!r} is not a task id; write POINT/NAME, such as 2/foo or */foo")
    if len(parts) == 1:
        bare, status = _selector(written)
        name, _, point = bare.rpartition(".")
        if name and point:
            return WrittenId(text, point, name, status)
        return WrittenId(text, bare, "", status)
    point, of_point = _selector(parts[0])
    name, of_name = _selector(parts[1])
    submit = parts[2] if len(parts) == _SUBMIT_PARTS else "0"
    if not submit.isdigit():
        raise Refused(f"{text!r}: the third part of an id is a submit number, not {submit!r}")
    given = int(submit) if len(parts) == _SUBMIT_PARTS else None
    return WrittenId(text, point, name, of_name or of_point, given)


def _selector(part: str) -> tuple[str, str]:
    """Returns a part of an id without its status, and the status, "" if it has none. Points may
    have colons, too, so what begins with a digit is no status."""
    head, colon, word = part.rpartition(":")
    if not colon or not head or word.isdigit() or word[:1].isdigit():
        return part, ""
    word = _OTHER_WORDS.get(word, word)
    if word not in STATUS_WORDS and not is_glob(word):
        words = ", ".join(STATUS_WORDS)
        raise Refused(f"{part!r}: tasks can be chosen by status ({words}), not by {word!r}")
    return head, word


def status_words(task: PooledTask) -> tuple[str, ...]:
    """Returns every word for a status by which a pooled task can be chosen."""
    words = []
    if task.stage is JobPhase.WAITING:
        words.append("waiting")
    elif task.stage is JobPhase.INCOMPLETE:
        words += [task.ended, "incomplete"]
    else:
        words += [task.stage.name.lower(), "active"]
    if task.held:
        words.append("held")
    word = _OF_STANDING.get(task.standing)
    if word is not None:
        words.append(word)
    return tuple(words)


INITIAL, FINAL = "^", "$"

_DATE = pattern(
    r"(?P<year>[0-9]{4}|[-+][0-9]{5,})(?:-?(?P<month>[0-9]{2})(?:-?(?P<day>[0-9]{2}))?)?"
    r"(?:T(?P<hour>[0-9]{2})(?::?(?P<minute>[0-9]{2})(?::?(?P<second>[0-9]{2}))?)?)?"
    r"(?P<zone>Z|[-+][0-9]{2}(?::?[0-9]{2})?)?"
)


def read_point(cycling: CyclingDef, text: str) -> Point:
    """Returns the point that a text means in a run; raises Refused if it means none."""
    if text == INITIAL:
        return cycling.initial
    if text == FINAL:
        if cycling.final is None:
            raise Refused("$ is the final point, and this run has none; write the point itself")
        return cycling.final
    found = find_point(cycling.style, text)
    if found is None:
        example = cycling.style.text(cycling.initial)
        raise Refused(
            f"{text!r} is not a point of this run; points look like {example}, ^ or $"
        )
    return found


def find_point(style: PointStyle, text: str) -> Point | None:
    """Returns the point of a text in the run's own form, or of a date; None for others."""
    try:
        return style.read(text)
    except BadCycling:
        found = None if style.calendar is Calendar.INTEGER else _DATE.fullmatch(text)
    return None if found is None else _dated(style, found)


def _dated(style: PointStyle, found: re.Match[str]) -> Point | None:
    year, month, day = (int(found[part] or 1) for part in ("year", "month", "day"))
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    calendar = style.calendar
    if not 1 <= month <= MONTHS_PER_YEAR or not 1 <= day <= days_in_month(
        calendar, year, month
    ):
        return None
    if hour >= HOURS_PER_DAY or max(minute, second) >= SECONDS_PER_MINUTE:
        return None
    time = hour * SECONDS_PER_HOUR + minute * SECONDS_PER_MINUTE + second
    days = days_from_date(calendar, year, month, day)
    shift = _zone_minutes(style, found["zone"]) * SECONDS_PER_MINUTE
    point = Point(days * SECONDS_PER_DAY + time - shift)
    return point if style.first_point <= point <= style.last_point else None


def _zone_minutes(style: PointStyle, zone: str | None) -> int:
    if zone is None:
        return style.written_offset_minutes
    if zone == "Z":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[3:].lstrip(":") or 0)
    return -minutes if zone[0] == "-" else minutes
