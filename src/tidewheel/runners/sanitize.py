"""Makes texts from jobs fit to be stored and shown; secrets in them are masked.

It imports little: `tidewheel message` in a job needs it, too. A secret counts in the forms in
which programs print it: as it is, in JSON, and quoted by a shell. Of a value with several lines
each line counts as well. Shorter texts than LENGTH_MIN would mask half of what a job prints.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

MASK = "***"
LENGTH_MIN = 6
VARIABLES = "TIDEWHEEL_SECRETS"  # in a job's environment: the names of those with a secret
# Before what a job wrote last, in how it ended.
LAST_LINE = "; last line of job.err: "
LAST_LINE_OF_LOG = "; last line of its log: "
LAST_LINES = (LAST_LINE, LAST_LINE_OF_LOG)


def storable(text: str, length_max: int | None = None) -> str:
    """Returns the text as any database keeps it: no NUL, only Unicode, not too long."""
    kept = text if length_max is None or len(text) <= length_max else text[:length_max] + "…"
    return kept.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def printable(text: str) -> str:
    """Returns the text with control characters spelled out, so that it moves no cursor."""
    if text.isprintable():  # nearly all are
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def masked_texts(values: Iterable[str]) -> tuple[str, ...]:
    """Returns every text by which one of these values could be known, the longest first."""
    found: set[str] = set()
    for value in values:
        for text in (value, *value.splitlines()):
            plain = text.strip()
            quotes = ("'\\''", "'\"'\"'")  # of bash, and of Python's shlex
            found.update((text, plain, *(plain.replace("'", one) for one in quotes)))
            found.update(json.dumps(plain, ensure_ascii=one)[1:-1] for one in (True, False))
    long = (text for text in found if len(text) >= LENGTH_MIN)
    return tuple(sorted(long, key=lambda text: (-len(text), text)))


def secrets_in(environ: Mapping[str, str]) -> list[str]:
    """Returns the secrets in the environment of a job."""
    return [environ[name] for name in environ.get(VARIABLES, "").split() if name in environ]


def masked(text: str, hidden: Iterable[str]) -> str:
    """Returns the text with *** in place of each of these texts; the longest come first."""
    for one in hidden:
        text = text.replace(one, MASK)
    return text
