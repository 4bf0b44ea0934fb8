"""Keeps `server.json` in the state directory, which says where this user's server answers.

`tidewheel up` writes the file and removes it at the end. A killed server leaves it behind:
a reader asks whether that very process still lives.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from tidewheel.config import SERVER_FILE, found_server, home_directory, store_url
from tidewheel.core.queue.requests import HostProcess
from tidewheel.errors import BadSetting, StoreUnreachable
from tidewheel.wiring.machine import is_process_alive, make_private_directory, this_process
from tidewheel.wiring.stores import is_remote, store_settings


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


def write_server_file(home: Path, url: str, store: str) -> None:
    """Writes the file for this process, readable by its user alone.

    Nothing is written if another server of this host is alive.
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
    """Says whether another server on this host is alive; False for one on another host."""
    found = found_server(home)
    if found is None or found.process.boot_id != process.boot_id:
        return False
    return found.process != process and is_process_alive(found.process)


def remove_server_file(home: Path) -> None:
    """Removes the file if it is of this process, and not of another server."""
    found = found_server(home)
    if found is not None and found.process == this_process():
        (home / SERVER_FILE).unlink(missing_ok=True)


def server_url(where: str | None) -> str:
    """Returns the server that was named, or the one that this user runs, whatever its store."""
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
