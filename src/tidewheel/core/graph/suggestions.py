"""The name that was probably meant.

Two measures: `nearest` finds something to offer for a word that is wrong anyway; `Lookalikes`
and `nearly_said` judge whether it is so like another that it must be a slip.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import islice

CANDIDATES_MAX = 2_000  # compared with one word: a hint must not cost more than the work
LENGTH_DIFFERENCE_MAX = 3
LIKENESS_MIN = 0.6
LOOKALIKE_LENGTH_MIN = 4  # among shorter words everything is like everything

# What numbers things that belong together: `model_1`, `model_2`; `member_a`, `member_b`.
_NUMBERING = re.compile(r"\d+|(?<![^\W_])[^\W_](?![^\W_])")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name most like this word, or None if none is like it."""
    length = len(word)
    candidates = islice(
        (name for name in known if abs(len(name) - length) <= LENGTH_DIFFERENCE_MAX),
        CANDIDATES_MAX,
    )
    found = get_close_matches(word, list(candidates), n=1, cutoff=LIKENESS_MIN)
    return found[0] if found else None


def meant(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Asks whether the nearest known name was meant; ``otherwise`` if none is like it."""
    near = nearest(word, known)
    return otherwise if near is None else f"did you mean {near!r}?"


def nearly_said(text: str, known: Iterable[str]) -> str | None:
    """The known text that this one must be a slip of: a letter, capitals or spaces off."""
    by_words = {" ".join(one.split()).casefold(): one for one in known}
    words = " ".join(text.split()).casefold()
    near = words if words in by_words else Lookalikes(by_words).of(words)
    return None if near is None else by_words[near]


class Lookalikes:
    """Known words, each found by any word that is one letter off.

    One letter too many, too few, another or in its neighbour's place: all of these are alike
    once a letter is left out of either. Words that only number things differ on purpose.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self._by_part: dict[str, list[str]] = {}
        for word in known:
            for part in _parts(word):
                self._by_part.setdefault(part, []).append(word)

    def of(self, word: str) -> str | None:
        """The known word that this one must be a slip of, if any."""
        unnumbered = _NUMBERING.sub("", word)
        for part in _parts(word):
            for found in self._by_part.get(part, ()):
                if found != word and _NUMBERING.sub("", found) != unnumbered:
                    return found
        return None


def _parts(word: str) -> Iterator[str]:
    """The word, and what is left without any one of its letters."""
    if len(word) < LOOKALIKE_LENGTH_MIN:
        return
    yield word
    for at in range(len(word)):
        yield word[:at] + word[at + 1 :]
