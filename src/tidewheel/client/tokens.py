"""Making tokens: the secret is shown once, the store knows its hash."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from pathlib import Path
from typing import TypedDict, Unpack

from tidewheel.core.tasks.access import Grant, NewToken, Scope, TokenKind, TokenView
from tidewheel.ports import AccessStore

SECRET_BYTES = 32
TOKEN_FILE = "token"
_FORM = re.compile(r"tw_([1-9][0-9]{0,18})_([A-Za-z0-9_-]{43})")


async def make_token(
    store: AccessStore, name: str, grant: Grant, lasts_seconds: float | None = None
) -> tuple[str, TokenView]:
    """A new token: its text, which nobody can ask for again, and what is stored of it."""
    return await _made(store, name, grant, lasts_seconds=lasts_seconds)


async def derive_token(
    store: AccessStore, parent: TokenView, kind: TokenKind, lasts_seconds: float
) -> tuple[str, TokenView]:
    """One that allows what another does, and ends with it at the latest."""
    return await _made(
        store,
        parent.name,
        parent.grant,
        kind=kind,
        # A session comes from a login, which is over by then: it hangs on the token before.
        parent=parent.number if parent.parent is None else parent.parent,
        lasts_seconds=lasts_seconds,
    )


async def _made(
    store: AccessStore, name: str, grant: Grant, **more: Unpack[_More]
) -> tuple[str, TokenView]:
    secret = secrets.token_urlsafe(SECRET_BYTES)
    view = await store.create_token(
        NewToken(name=name, digest=secret_digest(secret), grant=grant, **more)
    )
    return f"tw_{view.number}_{secret}", view


class _More(TypedDict, total=False):
    kind: TokenKind
    parent: int | None
    lasts_seconds: float | None


async def first_token(store: AccessStore, home: Path) -> Path | None:
    """Where there is no token at all, nobody could make one: an admin's, in a file of this
    user alone. None if there was one."""
    if await store.tokens():
        return None
    text, _ = await make_token(store, "first start", Grant(scopes=frozenset({Scope.ADMIN})))
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = home / TOKEN_FILE
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text + "\n")
    return path


def split_token(text: str) -> tuple[int, str] | None:
    """Number and secret; None if it has not the form of a token."""
    found = _FORM.fullmatch(text)
    return (int(found[1]), found[2]) if found else None


def secret_digest(secret: str) -> str:
    """As it is stored. A random secret of 256 bits needs no slow hash: nobody can try them."""
    return hashlib.sha256(secret.encode()).hexdigest()
