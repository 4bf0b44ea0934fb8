"""Finds the tasks that somebody wants to look at, also those that have ended."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import islice

from tidewheel.core.graph.outputs import standard_name
from tidewheel.core.operator.selection import find_point, read_id, read_id_of, select
from tidewheel.core.operator.verbs import Remove, Set, Trigger, read_command
from tidewheel.core.operator.views import CommandView, sees_object
from tidewheel.core.sched.dependency_index import IndexedNode
from tidewheel.core.sched.elements import is_there
from tidewheel.core.sched.interventions import completing
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Refused
from tidewheel.formats.sip.model import OBJECT_PREFIX
from tidewheel.views.snapshot import RunSnapshot, ShownTask
from tidewheel.views.status_text import ACTIVE, words_of

TASKS_MAX = 100  # shown in full by one request
COMMANDS_MAX = 1_000  # the newest of a run, in which those about a task are looked for


def find_tasks(snapshot: RunSnapshot, texts: Iterable[str]) -> tuple[Key, ...]:
    """Returns the tasks that ids mean, in the pool or ended; raises Refused for an id that
    means none.

    A glob, a family or a point means all known tasks that fit. A bare name, or a glob that fits
    names only, means the tasks of these names at all points. (R001-51)
    """
    known = snapshot.known_keys()
    points = {snapshot.pool.plan.text(key[0]) for key in known}
    found: set[Key] = set()
    for text in texts:
        # The status by which an id chooses is split off: here ended tasks have one, too.
        if snapshot.is_of_stages:
            written = read_id_of(snapshot.pool, text)
            status, head = written.status, f"{written.point}/{written.name or '*'}"
        else:
            status = read_id(text).status if "/" in text or ":" in text else ""
            head = text.rpartition(":")[0] if status else text
            head = _with_point(snapshot, head, known, points)
        meant = select(snapshot.pool, [head], all_at_point=not status, also=known)
        fitting = {key for key in meant if not status or _fits(snapshot, key, status)}
        if not fitting:
            raise Refused(
                f"{text}: {len(meant)} tasks have this name, but none of them is {status}"
            )
        found |= fitting
    return tuple(sorted(found))


def few_tasks(snapshot: RunSnapshot, ids: list[str]) -> tuple[Key, ...]:
    """Returns the tasks that ids mean, to be shown in full; raises Refused for too many."""
    keys = find_tasks(snapshot, ids)
    if len(keys) > TASKS_MAX:
        raise Refused(
            f"{len(keys)} tasks match, and at most {TASKS_MAX} are shown in full; "
            "name fewer, or see them all with tidewheel tree"
        )
    return keys


def _fits(snapshot: RunSnapshot, key: Key, status: str) -> bool:
    words = words_of(snapshot.pool, key)
    fitting = [words.state, *words.remarks]
    fitting += ["active"] if words.state in ACTIVE else []
    fitting += ["pending"] if {"xtrigger", "retrying"} & set(words.remarks) else []
    return any(fnmatchcase(word, status) for word in fitting)


def _with_point(
    snapshot: RunSnapshot, text: str, known: Iterable[Key], points: set[str]
) -> str:
    """Returns an id with a point in it: a bare name means the node's known tasks at all points,
    or its first task if none is known."""
    nodes = snapshot.pool.plan.nodes
    if text in nodes:
        node = snapshot.graph.nodes.get(text)  # None: a reload removed it
        first = None if node is None else node.first_from(snapshot.pool.run.start)
        if first is None or any(key[1] == text for key in known):
            return f"*/{text}"
        return f"{snapshot.pool.plan.text(first)}/{text}"
    names = (*nodes, *snapshot.graph.families)
    if "/" in text or not any(fnmatchcase(name, text) for name in names):
        return text
    return text if any(fnmatchcase(point, text) for point in points) else f"*/{text}"


def find_task(snapshot: RunSnapshot, text: str) -> tuple[Key, int | None]:
    """Returns the task that an id means, the last of several, and the submit number in the id;
    None if it has none."""
    found = find_tasks(snapshot, [text])
    pool = snapshot.pool
    submit = None if text in pool.plan.nodes else read_id_of(pool, text).submit
    return found[-1], submit


# Window n: the pool, and everything within n edges of it (R001-50).
#
# Tasks behind the pool are known from history, those ahead of it from the graph.


EDGES_MAX = 10  # how far one may look
WINDOW_TASKS_MAX = 5_000  # of one window


def window(pool: TaskPool, edges: int, middle: Iterable[Key] | None = None) -> dict[Key, int]:
    """Returns the tasks of the window with their distances from the pool, up to a maximum.

    With a `middle` the distance is that from these tasks.
    """
    found = dict.fromkeys(islice(pool.tasks if middle is None else middle, WINDOW_TASKS_MAX), 0)
    front = list(found)
    for distance in range(1, min(edges, EDGES_MAX) + 1):
        following: list[Key] = []
        for key in front:
            for other in neighbours(pool, key):
                if other not in found and len(found) < WINDOW_TASKS_MAX:
                    found[other] = distance
                    following.append(other)
        front = following
    return found


def neighbours(pool: TaskPool, key: Key) -> Iterator[Key]:
    """Yields the parents and the children of a task that lie within the run."""
    for other in (*parents(pool, key), *children(pool, key)):
        (point, name), final = other, pool.plan.final
        inside = point >= pool.run.start and (final is None or point <= final)
        if inside and is_there(pool, pool.plan.nodes[name], point):
            yield other


def parents(pool: TaskPool, key: Key) -> Iterator[Key]:
    """Yields every task that an arrow into this one names, also at points outside the run."""
    for arrow, _ in pool.plan.nodes[key[1]].arrows_at(key[0]):
        for leaf in arrow.leaves:
            parent = leaf.parent_point(key[0], pool.plan.initial)
            members = (leaf.node,) if leaf.group is None else leaf.group.members
            for member in members:
                yield (parent, member)


def children(pool: TaskPool, key: Key) -> Iterator[Key]:
    """Yields every task that waits for an output of this one; some more than once."""
    node = pool.plan.nodes[key[1]]
    links = [link for found in node.links.values() for link in found]
    links += [link for found in node.groups.values() for group in found for link in group.links]
    for link in links:
        # An absolute parent has children at points without end.
        if link.arrow.suicide or link.leaf.absolute is not None:
            continue
        for child in pool.plan.child_points(link, key[0]):
            for target, _ in link.arrow.targets:
                yield (child, target.name)


# The functions below tell which nodes stand for buffer objects, and how one is posted.


OBJECT_TITLE = "buffer object "


def object_name(snapshot: RunSnapshot, key: Key) -> str | None:
    """Returns the name of the buffer object that a node stands for; None for any other task."""
    node = snapshot.pool.plan.nodes.get(key[1])
    if node is None or not key[1].startswith(OBJECT_PREFIX):
        return None
    title = dict(node.definition.meta).get("title", "")
    return title.removeprefix(OBJECT_TITLE) if title.startswith(OBJECT_TITLE) else None


def post_commands(snapshot: RunSnapshot, key: Key, text: str) -> list[str]:
    """Returns the commands that post the buffer objects which the text of a reason names."""
    if OBJECT_TITLE not in text:
        return []
    nodes = snapshot.pool.plan.nodes
    others = ((key[0], name) for name in nodes if name.startswith(OBJECT_PREFIX))
    names = (object_name(snapshot, one) for one in others)
    return [
        how_posted(snapshot, name)
        for name in names
        if name is not None
        and re.search(rf"{re.escape(OBJECT_TITLE + name)}(?=$|[\s,;:])", text)
    ]


def how_posted(snapshot: RunSnapshot, name: str) -> str:
    """Returns the command that posts a buffer object, or why none would help this run."""
    if sees_object(snapshot.view, name):
        return f"tidewheel objects post {shlex.quote(name)}"
    who = "the owner of the run, or of its code"
    return f"# {name} is not visible to this run: {who}, may not see it"


def outputs_set(node: IndexedNode, command: Set | Trigger) -> list[str]:
    """Returns the outputs of a task that a command has set."""
    if not isinstance(command, Set) or (command.prerequisites and not command.outputs):
        return []
    return [standard_name(one) for one in command.outputs] or list(completing(node))


def obeyed_commands(
    snapshot: RunSnapshot, one: ShownTask, commands: Sequence[CommandView]
) -> Iterator[tuple[CommandView, Set | Trigger]]:
    """Yields obeyed commands about a task, newest first, back to the one that removed it."""
    for view in commands:
        if view.answered_at is None or view.refused is not None:
            continue
        try:
            command = read_command(view.body)
        except Refused:  # this version cannot read it
            continue
        if isinstance(command, Remove) and _concerns(snapshot, one, view, command.ids):
            break
        if isinstance(command, Set | Trigger) and _concerns(snapshot, one, view, command.ids):
            yield view, command


def _concerns(
    snapshot: RunSnapshot, one: ShownTask, view: CommandView, ids: Sequence[str]
) -> bool:
    answer = json.loads(view.answer or "{}")
    named = answer.get("tasks") if isinstance(answer, dict) else None
    if isinstance(named, dict | list):
        return one.id in named
    return any(_names(snapshot, one.key, text) for text in ids)


def _names(snapshot: RunSnapshot, key: Key, text: str) -> bool:
    try:
        written = read_id_of(snapshot.pool, text)
    except Refused:
        return False
    style = snapshot.graph.cycling.style
    return written.name == key[1] and find_point(style, written.point) == key[0]
