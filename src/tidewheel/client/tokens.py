"""Makes tokens: the secret is shown once, and the store knows only its hash."""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidewheel.config import TOKEN_FILE, token_file_of
from tidewheel.core.queue.access import Grant, NewToken, Scope, TokenKind, TokenView
from tidewheel.core.queue.tokens import secret_digest, split_token
from tidewheel.errors import NotFound
from tidewheel.ports.store import TokenStore

SECRET_BYTES = 32
ADMIN = Grant(scopes=frozenset({Scope.ADMIN}))


async def make_token(
    store: TokenStore,
    name: str,
    grant: Grant,
    lasts_seconds: float | None = None,
    **more: Any,  # noqa: ANN401 - other fields of a NewToken
) -> tuple[str, TokenView]:
    """Makes a token; returns its text, which is never shown again, and what is stored of it."""
    secret = secrets.token_urlsafe(SECRET_BYTES)
    digest = secret_digest(secret)
    new = NewToken(name=name, digest=digest, grant=grant, lasts_seconds=lasts_seconds, **more)
    view = await store.create_token(new)
    return f"tw_{view.number}_{secret}", view


async def derive_token(
    store: TokenStore, parent: TokenView, kind: TokenKind, lasts_seconds: float
) -> tuple[str, TokenView]:
    """Makes a token that allows what its parent does, and ends with it at the latest."""
    # A session comes from a login, which is over by then: it hangs on the token before.
    above = parent.number if parent.parent is None else parent.parent
    return await make_token(
        store, parent.name, parent.grant, lasts_seconds, kind=kind, parent=above
    )


async def first_token(store: TokenStore, home: Path) -> Path | None:
    """Makes an admin's token if the store has none, in a file that only this user can read.

    Returns the file; None if there was a token already.
    """
    if await store.tokens():
        return None
    text, _ = await make_token(store, "first start", ADMIN)
    return _written(text, home / TOKEN_FILE)


async def local_admin(store: TokenStore, home: Path, address: str) -> tuple[TokenView, Path]:
    """Returns an admin's token for the user who starts a server, and the file that has it.

    The file is that in the state directory. One with something else stays as it is, since it
    may be good for another server: then a file beside it is for the store at this address.
    """
    usual, beside = home / TOKEN_FILE, home / token_file_of(address)
    if view := await _good_admin(store, usual):
        beside.unlink(missing_ok=True)  # of a store that was there before
        return view, usual
    if view := await _good_admin(store, beside):
        return view, beside
    text, view = await make_token(store, "up", ADMIN)
    return view, _written(text, beside if usual.exists() else usual)


async def _good_admin(store: TokenStore, path: Path) -> TokenView | None:
    """Returns the token in a file, if it is valid in this store and has the scope admin."""
    if not path.exists():
        return None
    split = split_token(path.read_text(encoding="ascii", errors="replace").strip())
    if split is not None:
        number, secret = split
        with suppress(NotFound):
            view, now = await store.token(number)
            is_same = hmac.compare_digest(view.digest, secret_digest(secret))
            if is_same and view.is_valid(now) and Scope.ADMIN in view.grant.scopes:
                return view
    return None


def _written(text: str, path: Path) -> Path:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text + "\n")
    return path
