"""The name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

CANDIDATES_MAX = 2_000  # compared with one word: a hint must not cost more than the work
LENGTH_DIFFERENCE_MAX = 3
LIKENESS_MIN = 0.6


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name most like this word, or None if none is like it."""
    length = len(word)
    candidates = islice(
        (name for name in known if abs(len(name) - length) <= LENGTH_DIFFERENCE_MAX),
        CANDIDATES_MAX,
    )
    found = get_close_matches(word, list(candidates), n=1, cutoff=LIKENESS_MIN)
    return found[0] if found else None
