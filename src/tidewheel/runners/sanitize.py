"""Makes texts from jobs fit to be stored and shown."""

from __future__ import annotations


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
