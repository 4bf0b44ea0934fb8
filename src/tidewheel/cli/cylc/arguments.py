"""Reads options of Cylc's commands as Cylc does: anywhere, and shortened if unique."""

from __future__ import annotations

import getopt
import re
from collections.abc import Iterable, Sequence

from tidewheel.lazy_dataclasses import NamedTuple


class Option(NamedTuple):
    """Describes an option by all of its names; if it `takes` no value, it is a flag."""

    names: tuple[str, ...]
    takes: bool = True

    @property
    def key(self) -> str:
        """Returns the name of the option: its first long one."""
        return next(name[2:] for name in self.names if name.startswith("--"))


class Arguments:
    """Holds the words of a call, and the values of its options in their order."""

    __slots__ = ("options", "words")

    def __init__(self, words: list[str], options: dict[str, list[str]]) -> None:
        self.words = words
        self.options = options

    def __contains__(self, key: str) -> bool:
        return key in self.options

    def last(self, key: str, default: str = "") -> str:
        return self.options[key][-1] if key in self.options else default

    def parts(self, key: str) -> tuple[str, ...]:
        """Returns the values of an option that may be repeated, and may have commas."""
        found = (part.strip() for one in self.options.get(key, ()) for part in one.split(","))
        return tuple(part for part in found if part)


class BadUsage(Exception):
    """The words on the command line make no sense; the message says what would."""


def options(text: str) -> tuple[Option, ...]:
    """Reads a list of options, `-f --file=, --long`, where `=` means that one takes a value."""
    found = (one.strip() for one in text.split(",") if one.strip())
    return tuple(
        Option(tuple(one.removesuffix("=").split()), takes=one.endswith("=")) for one in found
    )


# Options of every command of Cylc, which change nothing here.
_IDLE = options(
    "-v --verbose, -q --quiet, --debug, --no-timestamp, -y --yes, --timestamp, "
    "--color --colour=, --comms-timeout=, --user=, --host=, --owner=, -m --multi"
)


def read_arguments(verb: str, options: Iterable[Option], arguments: Sequence[str]) -> Arguments:
    """Reads the words of a call; raises BadUsage, with the options that exist, for any other
    option."""
    own = list(options)
    taken = {name for one in own for name in one.names}
    known = own + [
        Option(tuple(name for name in one.names if name not in taken), one.takes)
        for one in _IDLE
        if not taken.issuperset(name for name in one.names if name.startswith("--"))
    ]
    names = [(name, one.takes) for one in known for name in one.names]
    short = [name[1] + ":" * takes for name, takes in names if not name.startswith("--")]
    long = [name[2:] + "=" * takes for name, takes in names if name.startswith("--")]
    try:
        found, words = getopt.gnu_getopt(list(arguments), "".join(short), long)
    except getopt.GetoptError as error:
        accepted = ", ".join("/".join(one.names) for one in own) or "no options"
        raise BadUsage(f"cylc {verb}: {error.msg}; expected {accepted}") from None
    by_name = {name: one.key for one in known for name in one.names}
    said: dict[str, list[str]] = {}
    for name, value in found:
        said.setdefault(by_name[name], []).append(value)
    return Arguments(words, said)


# ---- Ids as Cylc's users write them. ----

_USER = re.compile(r"\A~[^/]*/")


class Ids(NamedTuple):
    """Holds a workflow, "" for the one of this job, and the ids that are meant within it."""

    workflow: str
    within: tuple[str, ...]


def read_ids(verb: str, words: Sequence[str]) -> Ids:
    """Reads the ids of one workflow; raises BadUsage if there are several workflows."""
    workflows: dict[str, None] = {}
    within: list[str] = []
    for number, word in enumerate(words):
        before, slashes, rest = _USER.sub("", word, count=1).partition("//")
        if not slashes and number and workflows:
            within.append(before)  # as before Cylc 8: the tasks follow their workflow
            continue
        if before:
            workflows[before.rstrip("/")] = None
        if rest:
            within.append(rest.rstrip("/"))
    if len(workflows) > 1:
        raise BadUsage(
            f"cylc {verb}: {' and '.join(workflows)} are several workflows; name one at a time"
        )
    return Ids(next(iter(workflows), ""), tuple(within))
