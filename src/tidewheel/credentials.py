"""Finds the keys that this process has: which token it shows to which server.

A token of one server is never shown to another one, nor to anybody in clear, unless the user
says so.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from tidewheel.config import (
    ENVIRON,
    IN_CLEAR,
    KEY_VARIABLES,
    TAKEN_KEYS,
    TOKEN_FILE,
    TOKEN_VARIABLE,
    Credentials,
    found_server,
    home_directory,
    is_here,
    is_loopback,
)
from tidewheel.errors import BadSetting

TOKEN_FILE_VARIABLE = "TIDEWHEEL_TOKEN_FILE"
STANDARD_INPUT = "-"  # instead of a token's file
CREDENTIAL = "tidewheel.token"  # a systemd credential, a file in $CREDENTIALS_DIRECTORY
TOKEN_FILE_LENGTH_MAX = 4_096


def token_file_of(store: str) -> str:
    """Returns the name of the token file for the server of one store.

    The file is used where the usual one already holds the token of another server.
    """
    return f"{TOKEN_FILE}-{hashlib.sha256(store.encode()).hexdigest()[:12]}"


def login_file_of(server: str) -> str:
    """Returns the name of the file that holds the token of a person who signed in at a server
    (`tidewheel login`); it is for that scheme, host and port alone."""
    parts = urlsplit(server.strip())
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    place = f"{parts.scheme}://{(parts.hostname or '').lower()}:{port}"
    return f"login-{hashlib.sha256(place.encode()).hexdigest()[:24]}"


def _signed_in(server: str, home: Path) -> Credentials | None:
    """Returns the token of a person who signed in at this server; None if nobody did, or if it
    has run out. The file has the token and, in its second line, its end."""
    if "," in server:  # it is for one server
        return None
    try:
        path = home / login_file_of(server)
        with path.open(encoding="utf-8", errors="replace") as file:
            token, _, ends_at = file.read(TOKEN_FILE_LENGTH_MAX).strip().partition("\n")
        if float(ends_at) <= time.time():  # noqa: TID251 - only spares a request in vain
            return None
    except (OSError, ValueError):
        return None
    return Credentials(token=token, origin=str(path))


def credentials(server: str, environ: Mapping[str, str] = ENVIRON) -> Credentials:
    """Returns the credentials for a server: the token in TIDEWHEEL_TOKEN, else in the file that
    TIDEWHEEL_TOKEN_FILE names, else a systemd credential, else that with which this user signed
    in there, else that of this user.

    The last is a file in the state directory. It holds an admin's token of this user's own
    server, so it is sent only to that server, or to servers on this machine; for any other, and
    without such a file, the token is None.
    """
    ca = environ.get("TIDEWHEEL_CA") or None
    in_clear = environ.get(IN_CLEAR, "") == "1"
    if token := environ.get(TOKEN_VARIABLE, "").strip():
        origin = environ.get(TOKEN_FILE_VARIABLE) or TOKEN_VARIABLE
        return Credentials(token=token, origin=origin, ca=ca, in_clear=in_clear)
    if named := _named_token_file(environ):
        return Credentials(token=read_token(named), origin=named, ca=ca, in_clear=in_clear)
    home = home_directory(environ)
    if (signed_in := _signed_in(server, home)) is not None:
        return replace(signed_in, ca=ca, in_clear=in_clear)
    own = found_server(home)
    for one in server.split(","):
        is_own = own is not None and one.strip().rstrip("/") == own.url.rstrip("/")
        if not is_own and not is_here(one):
            return Credentials(ca=ca, in_clear=in_clear)
    path = home / TOKEN_FILE
    if own is not None and server.strip().rstrip("/") == own.url.rstrip("/"):
        of_store = home / token_file_of(own.store)
        path = of_store if of_store.exists() else path
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            token = file.read(TOKEN_FILE_LENGTH_MAX).strip()
    except OSError:
        return Credentials(ca=ca, in_clear=in_clear)
    # Its own server is on this machine, whatever the address is.
    return Credentials(token=token or None, origin=str(path), ca=ca, in_clear=True)


def _named_token_file(environ: Mapping[str, str]) -> str | None:
    """Returns the file that a variable or systemd names for a token; None if neither does."""
    if named := environ.get(TOKEN_FILE_VARIABLE):
        return named
    folder = environ.get("CREDENTIALS_DIRECTORY")
    given = Path(folder, CREDENTIAL) if folder else None
    return str(given) if given is not None and given.exists() else None


def read_token(file: str) -> str:
    """Returns the token in a file that was named, or on standard input (`-`).

    Raises BadSetting if there is none.
    """
    accepted = f"a readable file that contains a token, or {STANDARD_INPUT} for standard input"
    try:
        if file == STANDARD_INPUT:
            token = sys.stdin.read(TOKEN_FILE_LENGTH_MAX).strip()
        else:
            with open(file, encoding="utf-8", errors="replace") as opened:
                token = opened.read(TOKEN_FILE_LENGTH_MAX).strip()
    except OSError as error:
        raise BadSetting("token-file", file, f"{accepted} ({error.strerror})") from error
    if not token:
        raise BadSetting("token-file", file, f"{accepted}; no token was found there")
    return token


def is_readable_by_others(found: os.stat_result) -> bool:
    """Says whether a file with a key is another's, or can be read by others (S31).

    The rule is that of PostgreSQL: a file of this user is for nobody else; one that belongs to
    root may be readable for a group, as where the system keeps keys for several services.
    """
    if found.st_uid not in (os.geteuid(), 0):
        return True
    return bool(found.st_mode & (0o037 if found.st_uid == 0 else 0o077))


def take_keys(token_file: str | None = None) -> None:
    """Takes the keys out of the environment of this process, and reads the token's file.

    This process still finds them through ENVIRON; those that it starts do not.
    """
    for name in KEY_VARIABLES:
        if (value := os.environ.pop(name, None)) is not None:
            TAKEN_KEYS[name] = value
    file = token_file or (
        None if TAKEN_KEYS.get(TOKEN_VARIABLE) else _named_token_file(ENVIRON)
    )
    if file is not None:
        TAKEN_KEYS[TOKEN_VARIABLE], TAKEN_KEYS[TOKEN_FILE_VARIABLE] = read_token(file), file


def is_safe_url(text: str) -> bool:
    """Says whether a URL leads over TLS, or nowhere but to this machine."""
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return False
    if parts.username is not None or not text.isascii() or not host:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
