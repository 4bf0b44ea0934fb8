"""Which home a process has, so that two can find out whether they share one folder."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from tidewheel.runners.job_directory import make_private_directory

HOME_FILE = "home.id"
_LENGTH_MAX = 64


def home_id(home: Path) -> str:
    """Of this home; it is given one the first time."""
    if found := known_home_id(home):
        return found
    make_private_directory(home)
    new = home / f"{HOME_FILE}.{secrets.token_hex(4)}"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(16))
    try:
        with suppress(FileExistsError):  # of several that are first, one is
            os.link(new, home / HOME_FILE)
    finally:
        os.unlink(new)
    found = known_home_id(home)
    assert found is not None, "it was just written"
    return found


def known_home_id(home: Path) -> str | None:
    """Of this home, if it has one."""
    try:
        return (home / HOME_FILE).read_text(encoding="ascii")[:_LENGTH_MAX] or None
    except (OSError, UnicodeDecodeError):
        return None
