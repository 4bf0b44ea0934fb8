"""Making tokens: the secret is shown once, the store knows its hash."""

from __future__ import annotations

import hashlib
import re
import secrets

from tidewheel.core.tasks.access import Grant, NewToken, TokenView
from tidewheel.ports import AccessStore

SECRET_BYTES = 32
_FORM = re.compile(r"tw_([1-9][0-9]{0,18})_([A-Za-z0-9_-]{43})")


async def make_token(
    store: AccessStore, name: str, grant: Grant, lasts_seconds: float | None = None
) -> tuple[str, TokenView]:
    """A new token: its text, which nobody can ask for again, and what is stored of it."""
    secret = secrets.token_urlsafe(SECRET_BYTES)
    view = await store.create_token(
        NewToken(
            name=name, digest=secret_digest(secret), grant=grant, lasts_seconds=lasts_seconds
        )
    )
    return f"tw_{view.number}_{secret}", view


def split_token(text: str) -> tuple[int, str] | None:
    """Number and secret; None if it has not the form of a token."""
    found = _FORM.fullmatch(text)
    return (int(found[1]), found[2]) if found else None


def secret_digest(secret: str) -> str:
    """As it is stored. A random secret of 256 bits needs no slow hash: nobody can try them."""
    return hashlib.sha256(secret.encode()).hexdigest()
