"""Makes tokens, and keeps the file that says where the server of this user answers.

The secret of a token is shown once, and the store knows only its hash.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from tidewheel.config import SERVER_FILE, TOKEN_FILE, found_server, home_directory, store_url
from tidewheel.core.queue.access import EVERYTHING, Grant, NewToken, Scope, TokenKind, TokenView
from tidewheel.core.queue.people import only_reading
from tidewheel.core.queue.requests import HostProcess
from tidewheel.core.queue.tokens import secret_digest, split_token
from tidewheel.credentials import token_file_of
from tidewheel.errors import BadSetting, NotFound, StoreUnreachable
from tidewheel.ports.store import Store
from tidewheel.wiring.machine import is_process_alive, make_private_directory, this_process
from tidewheel.wiring.stores import is_remote, store_settings

SECRET_BYTES = 32
ADMIN = Grant(scopes=frozenset({Scope.ADMIN}), names=EVERYTHING)


async def make_token(
    store: Store,
    name: str,
    grant: Grant,
    lasts_seconds: float | None = None,
    **more: Any,  # noqa: ANN401 - other fields of a NewToken
) -> tuple[str, TokenView]:
    """Makes a token; returns its text, which is never shown again, and what the store has of
    it."""
    secret = secrets.token_urlsafe(SECRET_BYTES)
    digest = secret_digest(secret)
    new = NewToken(name=name, digest=digest, grant=grant, lasts_seconds=lasts_seconds, **more)
    view = await store.create_token(new)
    return f"tw_{view.number}_{secret}", view


async def derive_token(
    store: Store, parent: TokenView, kind: TokenKind, lasts_seconds: float
) -> tuple[str, TokenView]:
    """Makes a token that allows what its parent allows, and is invalid once the parent is.

    Returns its text and what the store has of it.
    """
    # A session is made from a login, which is used up then: its parent is the login's parent.
    above = parent.number if parent.parent is None else parent.parent
    grant = parent.grant if parent.identity is None else only_reading(parent.grant)
    return await make_token(
        store,
        parent.name,
        grant,
        lasts_seconds,
        kind=kind,
        parent=above,
        identity=parent.identity,
    )


async def first_token(store: Store, home: Path, address: str) -> Path | None:
    """Makes an admin token if the store has no token, in a file that only this user can read.

    Returns that file, which is chosen as in ``local_admin``; None if there was a token already.
    """
    if await store.tokens():
        return None
    text, _ = await make_token(store, "first start", ADMIN)
    return write_private(text, _free_file(home, address))


def _free_file(home: Path, address: str) -> Path:
    """Returns where a new token goes: the usual file, or one beside it if that is in use."""
    usual = home / TOKEN_FILE
    return home / token_file_of(address) if usual.exists() else usual


async def local_admin(store: Store, home: Path, address: str) -> tuple[TokenView, Path]:
    """Returns an admin token for the user who starts a server, and the file that holds it.

    A token is made if there is none. Its file is the usual one in the state directory. If that
    file holds something else, it stays as it is, since it may be good for another server; a
    second file beside it then holds the token for the store at this address.
    """
    usual, beside = home / TOKEN_FILE, home / token_file_of(address)
    if view := await _good_admin(store, usual):
        beside.unlink(missing_ok=True)  # left by a store that was at this address before
        return view, usual
    if view := await _good_admin(store, beside):
        return view, beside
    text, view = await make_token(store, "up", ADMIN)
    return view, write_private(text, _free_file(home, address))


async def _good_admin(store: Store, path: Path) -> TokenView | None:
    """Returns the token in a file if it is valid in this store and has the scope admin, else
    None."""
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


def write_private(text: str, path: Path) -> Path:
    """Writes a text to a new file that only this user can read; returns its path."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text + "\n")
    return path


# `server.json` in the state directory says where this user's server answers.
#
# `tidewheel up` writes the file and removes it at the end. A killed server leaves it behind:
# a reader asks whether that very process still lives.


def without_password(address: str) -> str:
    """Returns the address of a store without its password, as it may be written down."""
    parts = urlsplit(address)
    if parts.scheme not in ("postgresql", "postgres"):
        return address
    user, at, host = parts.netloc.rpartition("@")
    query = [(name, value) for name, value in parse_qsl(parts.query) if name != "password"]
    return parts._replace(
        netloc=user.partition(":")[0] + at + host, query=urlencode(query)
    ).geturl()


def passwords_of(address: str) -> list[str]:
    """Returns the passwords in the address of a store, as they are written there."""
    parts = urlsplit(address)
    queried = [pair.partition("=") for pair in parts.query.split("&")]
    return [*filter(None, [parts.password]), *(v for n, _, v in queried if n == "password")]


def write_server_file(home: Path, url: str, store: str) -> None:
    """Writes `server.json` for the server in this process, readable by its user alone.

    Nothing is written if it names another server that is alive on this host.
    """
    make_private_directory(home)
    process = this_process()
    if _is_taken(home, process):
        return
    document = {"url": url, "store": without_password(store)} | asdict(process)
    path, new = home / SERVER_FILE, home / f".{SERVER_FILE}.{process.pid}"
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(document, file)
    new.replace(path)


def _is_taken(home: Path, process: HostProcess) -> bool:
    """Says whether `server.json` names another server that is alive on this host. False if it
    names one on another host."""
    found = found_server(home)
    if found is None or found.process.boot_id != process.boot_id:
        return False
    return found.process != process and is_process_alive(found.process)


def remove_server_file(home: Path) -> None:
    """Removes `server.json` if it names this process, and not another server."""
    found = found_server(home)
    if found is not None and found.process == this_process():
        (home / SERVER_FILE).unlink(missing_ok=True)


def server_url(where: str | None) -> str:
    """Returns the address of the server that was named, or else of the one that this user runs.

    Raises BadSetting if a store was named that is no server, and StoreUnreachable if none was
    named and none runs.
    """
    if where or store_url():
        url = store_settings(where).url
        if is_remote(url):
            return url
        raise BadSetting("server", url, "http://HOST:PORT or https://HOST (--server URL)")
    found = found_server(home_directory())
    if found is not None and is_process_alive(found.process):
        return found.url
    raise StoreUnreachable(
        "no server of yours is running; start one (`tidewheel up`) or name one: --server URL"
    )
