"""Reads filters: one grammar for tasks of queues, tasks of runs, and runs.

`PATTERN[:STATE[,STATE]...]`, either part alone, or `=TEXT`. A pattern without `*`, `?` and
`[...]` is a part of a name, one with any of them a whole name; neither minds capitals. A state
may be cut short. `=TEXT` is exactly this name. What has a name says which texts count as such:
of a task of a run also POINT/NAME and its families. The page reads the same
(`web/src/ui/globs.ts`); `tests/unit/filter_cases.json` has cases for both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate

from tidewheel.core.queue.submission import is_glob
from tidewheel.errors import BadSetting
from tidewheel.lazy_dataclasses import NamedTuple

LENGTH_MAX = 200
GRAMMAR = (
    "A filter is PATTERN[:STATE]: a part of a name, or a whole name with *, ? and [...]. "
    "States follow a colon and may be shortened: 'img-*', ':failed', 'img:fail,run'. "
    "=TEXT matches exactly this name."
)


class Filter(NamedTuple):
    """Holds a filter that was read; without states it is for those in any."""

    exact: str | None = None  # the one name that is meant
    is_named: Callable[[str], object] | None = None  # given a name in small letters
    states: frozenset[str] | None = None

    def fits(self, names: Iterable[str | None], words: Iterable[str] = ()) -> bool:
        """Says whether something with any of these names and these states is meant."""
        if self.states is not None and self.states.isdisjoint(words):
            return False
        return self.names_fit(names)

    def names_fit(self, names: Iterable[str | None]) -> bool:
        """Says whether something with any of these names is meant, whatever its states."""
        if self.exact is not None:
            return self.exact in names
        if self.is_named is None:
            return True
        return any(self.is_named(name.lower()) for name in names if name)


def read_filter(text: str, states: Sequence[str]) -> Filter:
    """Returns the filter of a text; raises BadSetting for a state that is none of these."""
    wanted = text.strip()
    if len(wanted) > LENGTH_MAX:
        raise BadSetting("filter", f"{wanted[:20]}…", f"at most {LENGTH_MAX} characters")
    if not wanted.isprintable():  # which no name is, and no database takes NUL
        raise BadSetting("filter", wanted, "printable characters")
    if wanted.startswith("="):
        return Filter(exact=wanted[1:])
    pattern, colon, after = wanted.rpartition(":")
    if not colon or after[:1].isdigit():  # a time such as 2030-01-01T06:00
        return Filter(is_named=_named(wanted))
    words = [word.strip().lower() for word in after.split(",") if word.strip()]
    meant = {state for word in words for state in _begun(word, states)}
    return Filter(is_named=_named(pattern), states=frozenset(meant) if words else None)


def _named(pattern: str) -> Callable[[str], object] | None:
    wanted = pattern.lower()
    if not wanted:
        return None
    if is_glob(wanted):
        return re.compile(translate(wanted)).match
    return lambda name: wanted in name


def _begun(word: str, states: Sequence[str]) -> list[str]:
    fits = re.compile(translate(word if is_glob(word) else f"{word}*")).match
    found = [state for state in states if fits(state)]
    if not found:
        known = ", ".join(states)
        raise BadSetting("state", word, f"{known} (for a colon in a name, write ?)")
    return found
