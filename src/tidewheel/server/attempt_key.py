"""Keeps the key by which servers of one store sign the tokens of jobs.

The key is a file of 32 random bytes or more that only the servers can read. The store has a
fingerprint of it and nothing else, so that nobody can make a job's token from what is stored or
from a backup of it.

Servers of one store need the same key, since any of them may be shown a token that another has
signed. Each says in the store, now and then, with which key it runs; a server with another key
refuses to start meanwhile.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import secrets
from contextlib import suppress
from pathlib import Path

from tidewheel.api.tasks import Task
from tidewheel.config import ATTEMPT_KEY_FILE, ServerSettings
from tidewheel.core.queue.access import TokenView
from tidewheel.core.queue.requests import Claimed
from tidewheel.core.queue.task import Instant
from tidewheel.core.queue.tokens import AttemptToken, attempt_token
from tidewheel.errors import BadSetting, TidewheelError
from tidewheel.ports.store import Store
from tidewheel.wiring.machine import make_private_directory, require_private_file

KEY_BYTES = 32
KEY_BYTES_MAX = 4_096
HELD_SECONDS = 20.0
ALIVE_SECONDS = 3 * HELD_SECONDS
_log = logging.getLogger("tidewheel.server")


class AttemptKey:
    """Signs the tokens of jobs, and tells those that were signed from others."""

    def __init__(self, store: Store, settings: ServerSettings) -> None:
        self._store, self._settings = store, settings
        self._secret: bytes | None = None
        self._since: Instant | None = None
        self._holding: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Says that a server runs with this key; raises BadSetting if one runs with another."""
        if others := await self._hold():
            path = key_path(self._settings)
            await self._store.leave_attempt_key(self._fingerprint)  # else it keeps others out
            raise BadSetting(
                "attempt_key_file",
                str(path),
                f"the key of the other servers of this store: a server with another key "
                f"({others[0][:12]}…, this server has {self._fingerprint[:12]}…) was "
                "running less than "
                f"{ALIVE_SECONDS:.0f} s ago. Give all servers the same file: "
                f"--attempt-key-file, or copy the key of the other servers to {path}",
            )
        self._holding = asyncio.create_task(self._keep_saying())

    async def close(self) -> None:
        """Says that this server has stopped."""
        if self._holding is not None:
            self._holding.cancel()
            with suppress(TidewheelError):
                await self._store.leave_attempt_key(self._fingerprint)

    def sign(self, parent: TokenView, task: Claimed | Task) -> str:
        """Returns the token for the job of a task's attempt; ``parent`` is the token that
        registered its worker."""
        return attempt_token(parent.number, self.secret, (task.id, task.seq), task.attempt)

    async def is_signed(self, said: AttemptToken, parent: TokenView, seq: int) -> bool:
        """Says whether a job's token is good: signed by this key or, for an attempt that began
        before there was any key, made as tokens were made then."""
        if said.is_proven_by(self.secret, seq):
            return True
        if self._since is None or not said.is_proven_by(parent.digest.encode(), seq):
            return False
        attempts = await self._store.attempts(said.task_id)
        return any(
            one.attempt == said.attempt and one.claimed_at < self._since for one in attempts
        )

    @property
    def secret(self) -> bytes:
        """Returns the key; it is read once, and made if there is none."""
        if self._secret is None:
            self._secret = read_key(self._settings)
        return self._secret

    @property
    def _fingerprint(self) -> str:
        return hashlib.sha256(b"attempt key\0" + self.secret).hexdigest()

    async def _hold(self) -> list[str]:
        """Says that this key is in use; returns the fingerprints of others that are."""
        held = await self._store.hold_attempt_key(self._fingerprint, ALIVE_SECONDS)
        self._since = held.since
        return held.others

    async def _keep_saying(self) -> None:
        while True:
            await asyncio.sleep(HELD_SECONDS)
            try:
                others = await self._hold()
            except TidewheelError:
                continue  # the store will be back
            if others:
                _log.error(
                    "another server of this store signs jobs' tokens with another key (%s…): "
                    "give all servers the same file: --attempt-key-file",
                    others[0][:12],
                )


def key_path(settings: ServerSettings) -> Path:
    """Returns the file of the key: the one that was named, else one in the state directory."""
    return settings.attempt_key_file or settings.state_directory / ATTEMPT_KEY_FILE


def read_key(settings: ServerSettings) -> bytes:
    """Returns the key; makes one in the state directory if none was named and none is there."""
    path = key_path(settings)
    if settings.attempt_key_file is None and not path.exists():
        _make_key(path)
    try:
        require_private_file("attempt_key_file", path)
        with path.open("rb") as file:
            key = file.read(KEY_BYTES_MAX)
    except OSError as error:
        accepted = f"a file that this server can read ({error.strerror})"
        raise BadSetting("attempt_key_file", str(path), accepted) from None
    if len(key) < KEY_BYTES:
        accepted = f"a file of {KEY_BYTES} random bytes or more: head -c 32 /dev/urandom"
        raise BadSetting("attempt_key_file", str(path), accepted)
    return key


def _make_key(path: Path) -> None:
    make_private_directory(path.parent)
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        file.write(secrets.token_bytes(KEY_BYTES))
    try:
        with suppress(FileExistsError):  # of several that are first, one is
            os.link(new, path)
    finally:
        os.unlink(new)
