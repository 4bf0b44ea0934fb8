"""Completes names of runs, tasks, queues and workflows; alone, as few commands load it.

What a word may be is read from the command's own usage line (`[RUN] ID...`), so a new command
has completion without a line of its own. A shell waits for the answer with the person in front
of it: little is read, no store is made, and any trouble means that nothing is proposed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from tidewheel.cli.session import Session
from tidewheel.lazy_dataclasses import NamedTuple

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient

NAMES_MAX = 200
JOB = "/"  # in ids of jobs of runs, which `log` and `show` name otherwise
SECONDS_MAX = 3.0
# A letter that a shell would take for more than text, in a name that somebody else chose.
UNSAFE = re.compile(r"[\s\x00-\x1f\x7f\"'`$\\;&|<>(){}!#~\u0080-\u009f]")


class Asked(NamedTuple):
    """Holds the command, the words of its usage line, and those that were typed before."""

    command: str
    usage: tuple[str, ...]
    typed: tuple[str, ...]


def attach(command: click.Command) -> None:
    """Gives those parameters of a command their completion that take names from the store."""
    for one in command.params:
        words = tuple(word for word in re.findall(r"[A-Z]+", one.metavar or "") if word in USED)
        words = next((OTHERWISE[name] for name in one.opts if name in OTHERWISE), words)
        if command.name == "queues" and isinstance(one, click.Argument):
            words = ("QUEUE",)
        if words:
            one._custom_shell_complete = partial(_complete, words)


# Words of usage lines that stand for names in the store.
USED = frozenset({"RUN", "ID", "NAME", "POINT", "QUEUE"})
# Options whose usage line says less than their name.
OTHERWISE = {"--queue": ("QUEUE",), "--delete": ("RUN",), "--workflow": ("NAME",)}


def _complete(
    usage: tuple[str, ...], context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    typed = context.params.get(parameter.name or "")
    words = tuple(typed) if isinstance(typed, tuple) else ()
    asked = Asked(context.command.name or "", usage, words)
    outer = context.find_object(Session) or Session()
    session = Session(store=context.params.get("store") or outer.store)
    try:
        found = session.ask(lambda client: _in_time(client, asked))
    except Exception:  # a shell that completes has no room for a message
        found = ()
    names = sorted({one for one in found if one.startswith(begun) and not UNSAFE.search(one)})
    # Where a definition may stand, its file or folder may, too; bash wants these first.
    paths = parameter.type.shell_complete(context, parameter, begun)
    return [*paths, *(CompletionItem(one) for one in names[:NAMES_MAX])]


async def _in_time(client: AsyncClient, asked: Asked) -> Iterable[str]:
    async with asyncio.timeout(SECONDS_MAX):
        return await _names(client, asked)


async def _names(client: AsyncClient, asked: Asked) -> Iterable[str]:
    """Returns the names that may stand where a word is being typed."""
    page: Any
    names: list[str] = []
    match asked:
        case Asked(usage=("QUEUE",)):
            names = [one.queue for one in await client.queues()]
        case Asked(usage=("RUN", *_), typed=()):
            names = await _runs(client)
        case Asked(usage=("RUN", _, *_), typed=(run, *_)):
            page = await client.runs.look("tasks", run=(await client.runs.find(run)).name)
            names = [row["id"] for row in page["tasks"]]
        case Asked(command="task" | "cancel"):
            tasks = await client.list(limit=NAMES_MAX)
            names = [one.id for one in tasks if JOB not in one.id]
        case Asked(command="blocks"):
            page = await client.blocks.list(count=NAMES_MAX)
            names = [one["id"] for one in page["blocks"]]
        case Asked(usage=("NAME", *_)):
            page = await client.workflows.list()
            names = [one["name"] for one in page["workflows"]]
            names += await _runs(client) if asked.command == "run" else ()
        case _:
            pass
    return names


async def _runs(client: AsyncClient) -> list[str]:
    page: Any = await client.runs.list(count=NAMES_MAX)
    return [one["name"] for one in page["runs"]]
