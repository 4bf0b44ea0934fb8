"""What a token looks like, and what is stored of it."""

from __future__ import annotations

import hashlib
import re

_FORM = re.compile(r"tw_([1-9][0-9]{0,18})_([A-Za-z0-9_-]{43})")


def split_token(text: str) -> tuple[int, str] | None:
    """Number and secret; None if it has not the form of a token."""
    found = _FORM.fullmatch(text)
    return (int(found[1]), found[2]) if found else None


def secret_digest(secret: str) -> str:
    """As it is stored. A random secret of 256 bits needs no slow hash: nobody can try them."""
    return hashlib.sha256(secret.encode()).hexdigest()
