"""Ids as Cylc's users write them.

`WORKFLOW//1/foo:failed`, `WORKFLOW// //1/a //1/b`, and from before Cylc 8 `WORKFLOW 1/foo` and
`WORKFLOW foo.1`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tidewheel.cli.cylc.arguments import BadUsage

_USER = re.compile(r"\A~[^/]*/")


class Ids(NamedTuple):
    """A workflow, "" for the one of this job, and what is meant within it."""

    workflow: str
    within: tuple[str, ...]


def read_ids(verb: str, words: Sequence[str]) -> Ids:
    """One workflow; more than one is refused."""
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
            f"cylc {verb}: {' and '.join(workflows)} are two workflows; name one at a time"
        )
    return Ids(next(iter(workflows), ""), tuple(within))
