"""Defines option types (durations, sizes, needs, limits), and the options of tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from tidewheel.cli.session import OptionRow, option, options
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.status import Status
from tidewheel.errors import BadSetting
from tidewheel.quantities import DURATIONS_ACCEPTED, SIZES_ACCEPTED, parse_duration, parse_size

T = TypeVar("T")


class Parsed(click.ParamType[T]):
    """Reads an option's text with a function; a failure says what is accepted."""

    def __init__(self, name: str, parse: Callable[[str], T], accepted: str) -> None:
        self.name = name
        self._parse = parse
        self._accepted = accepted

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> T:
        try:
            return self._parse(str(value))
        except (BadSetting, KeyError, ValueError):
            self.fail(f"{value!r} is not valid; expected {self._accepted}", param, ctx)


def parse_need(text: str) -> tuple[str, str | None]:
    """Reads ID or ID:OUTPUT; returns the task id and the output, which is None for success."""
    task_id, colon, output = text.rpartition(":")
    if not colon:
        return text, None
    if not task_id or not output:
        raise ValueError(text)
    return task_id, output


def parse_limit(text: str) -> Limit:
    """Reads `[KEY=]N`: how many tasks may run at once, of the queue, of one key or (`*`) of
    each."""
    key, _, count = text.rpartition("=")
    return Limit(key=key, concurrency_max=_whole(count))


def parse_rate(text: str) -> Limit:
    """Reads `[KEY=]N/TIME`: how many tasks may start in a period, of the queue, of one key or
    (`*`) of each."""
    key, _, rate = text.rpartition("=")
    count, _, period = rate.partition("/")
    seconds = parse_duration(period)
    if seconds <= 0:
        raise ValueError(text)
    return Limit(key=key, rate_max=_whole(count), rate_seconds=seconds)


def parse_job_limit(text: str) -> tuple[str, float]:
    """Reads `NAME=VALUE`, a limit on each process of a job; returns (field of JobLimits,
    value)."""
    name, _, value = text.partition("=")
    field, parse = JOB_LIMITS[name]
    return field, parse(value)


def parse_variable(text: str) -> tuple[str, str]:
    """Reads `NAME=VALUE`, a variable of a command's environment."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(text)
    return name, value


def _whole(text: str) -> int:
    if not text.isdigit():
        raise ValueError(text)
    return int(text)


def parse_nodes(text: str) -> tuple[str, int]:
    """Reads `[FLAVOUR=]N`, nodes that a worker offers; the flavour is "" if none is named."""
    flavour, equals, count = text.rpartition("=")
    number = _whole(count)
    if number < 1 or (equals and not flavour.strip()):
        raise ValueError(text)
    return flavour.strip(), number


JOB_LIMITS: dict[str, tuple[str, Callable[[str], float]]] = {
    "cpu": ("cpu_seconds", parse_duration),
    "memory": ("memory_bytes", parse_size),
    "files": ("open_files", _whole),
    "processes": ("processes", _whole),
    "file-size": ("file_bytes", parse_size),
}

DURATION = Parsed("duration", parse_duration, DURATIONS_ACCEPTED)
DURATIONS = Parsed(
    "durations",
    lambda text: [parse_duration(part) for part in text.split(",")],
    "durations with commas between: 1s,10s,5m",
)
VARIABLE = Parsed("name=value", parse_variable, "NAME=VALUE, or NAME=secret:NAME")
SIZE = Parsed("size", parse_size, SIZES_ACCEPTED)
NODES = Parsed("nodes", parse_nodes, "N, or FLAVOUR=N, with N from 1: 4, compute_a=10")
NEED = Parsed("id[:output]", parse_need, "ID, or ID:OUTPUT")
LIMIT = Parsed(
    "[key=]n", parse_limit, "4 for the queue, KEY=4 for a limit key, '*=4' for all other keys"
)
RATE = Parsed("[key=]n/time", parse_rate, "10/1s for the queue, KEY=10/1m, '*=1/1h'")
JOB_LIMIT = Parsed(
    "name=value",
    parse_job_limit,
    "cpu=1h, memory=4GiB, files=1024, processes=100 or file-size=10GiB",
)


# Options that follow from the fields of a task.


def filter_options(which: str) -> OptionRow:
    """Returns the options that filter tasks: --status, and one per filter that is explained.

    The help of each of the latter begins with ``which``.
    """
    from tidewheel.client.fields import Filters, explained
    from tidewheel.core.queue.filters import GRAMMAR

    words = {name: f"{which} {one}." for name, one in explained(Filters).items()}
    words["matching"] += f" {GRAMMAR}"
    statuses = f"{', '.join(Status)} (or a status name of Scylla or Banyan); repeatable."
    return options(option("--status TEXT...", statuses), name_options(words))


def name_options(words: dict[str, str]) -> OptionRow:
    """Returns an option that takes a text for each name, with the help that is given for it."""
    return options(
        *(option(f"--{name.replace('_', '-')} TEXT", said) for name, said in words.items())
    )
