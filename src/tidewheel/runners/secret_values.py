"""Finds the values of secrets for the jobs that a worker is about to start.

A secret `team-a/db` is looked for in three places, and the first that has it counts: the file
`team-a/db` in the folder of `--secrets`; the file `secret.team-a~db` among the credentials that
systemd gave this worker; what the command of `--secrets-command` prints for `team-a/db`, its
last argument. Values are read anew for each attempt and are kept nowhere.

Whether a task may use a secret is decided by names alone, before anything is read.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tidewheel.core.operator.definition import read_job_name
from tidewheel.core.queue.access import Name, covers, queue_name, run_name
from tidewheel.core.queue.requests import Claimed
from tidewheel.core.queue.secret_references import (
    REFERENCE,
    is_reference,
    owner_of,
    secret_named,
)
from tidewheel.credentials import is_readable_by_others
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import dataclass

VALUE_BYTES_MAX = 64 * 1024
LINES_MAX = 1_000  # each is masked by itself
COMMAND_SECONDS_MAX = 10.0
CREDENTIAL_PREFIX = "secret."  # so that no task can name another credential of its worker
CREDENTIAL_SLASH = "~"  # which no secret has in its name
_OTHERS = 0o007


class SecretRefused(Refused):
    """A secret cannot be given to a job; the message never has anything of its value."""

    code = "secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretSources:
    """Holds where a worker finds secrets; without any, every reference is refused."""

    directory: Path | None = None
    credentials: Path | None = None  # the folder that systemd made for this service
    command: tuple[str, ...] = ()
    command_seconds_max: float = COMMAND_SECONDS_MAX

    async def values_for(self, task: Claimed) -> dict[str, str]:
        """Returns the variables of a task that are secrets, with their values.

        Raises SecretRefused if one is not there, not readable, or not for this task.
        """
        found = {}
        for variable, secret in references_of(task).items():
            require_use(secret, task)
            found[variable] = await self._value(secret)
        return found

    async def _value(self, secret: str) -> str:
        if self.directory is not None:
            content = await asyncio.to_thread(_read_below, self.directory, secret)
            if content is not None:
                return _text(secret, content)
        if self.credentials is not None:
            content = await asyncio.to_thread(_read_credential, self.credentials, secret)
            if content is not None:
                return _text(secret, content)
        if self.command:
            return _text(secret, await self._printed(secret))
        places = [] if self.directory is None else [f"{self.directory / secret}"]
        if self.credentials is not None:
            places.append(f"the systemd credential {credential_of(secret)}")
        if not places:
            raise SecretRefused(
                f"{REFERENCE}{secret} cannot be found: this worker was started without secrets "
                "(--secrets DIR, --secrets-command, or systemd credentials)"
            )
        where = " and ".join(places)
        raise SecretRefused(
            f"there is no secret {REFERENCE}{secret} on this worker; the person who runs the "
            f"worker can put it there: {where}"
        )

    async def _printed(self, secret: str) -> bytes:
        """Returns what the command prints for a secret, which is its last argument."""
        called = f"{REFERENCE}{secret}: {self.command[0]}"
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command,
                secret,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                # Not a session: it would be reaped as an orphan, by its session (processes.py).
                process_group=0,
            )
        except (OSError, ValueError) as error:
            raise SecretRefused(f"{called} cannot be started ({error})") from None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(self.command_seconds_max):
                content = b""
                while len(content) <= VALUE_BYTES_MAX and (
                    more := await process.stdout.read(8192)
                ):
                    content += more
                if len(content) > VALUE_BYTES_MAX:
                    return content
                status = await process.wait()
        except TimeoutError:
            raise SecretRefused(
                f"{called} took more than {self.command_seconds_max:g} s and was killed"
            ) from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if status != 0:
            raise SecretRefused(
                f"{called} ended with status {status} and gave no secret; what it wrote is in "
                "the worker's log"
            )
        return content


def references_of(task: Claimed) -> dict[str, str]:
    """Returns the variables of a task that are secrets, with the names of these."""
    if task.environment is None:
        return {}
    try:
        told = json.loads(task.environment)
        return {one: secret_named(value) for one, value in told.items() if is_reference(value)}
    except ValueError as error:
        raise SecretRefused(str(error)) from None


def name_of(task: Claimed) -> Name:
    """Returns the name that decides which secrets a task may use: that of its run, else that of
    its queue. A token had to cover it when the task was submitted."""
    if task.run is None:
        return queue_name(task.queue)
    return run_name(read_job_name(task.id).run)


def require_use(secret: str, task: Claimed) -> None:
    """Raises SecretRefused if a secret is for others than this task."""
    owner, user = owner_of(secret), name_of(task)
    if owner and not covers((owner,), user):
        what = "run" if task.run is not None else "queue"
        raise SecretRefused(
            f"{REFERENCE}{secret} is only for names under {owner}, and this {what} is "
            f"{user.text}: use a name under {owner}, or ask the person who runs the worker "
            "for another secret"
        )


def credential_of(secret: str) -> str:
    """Returns how the systemd credential of a secret is called."""
    return CREDENTIAL_PREFIX + secret.replace("/", CREDENTIAL_SLASH)


def _read_below(root: Path, secret: str) -> bytes | None:
    """Returns the content of a secret's file; None if there is none."""
    path = Path(os.path.realpath(root / secret))
    if not path.is_relative_to(os.path.realpath(root)):
        raise SecretRefused(f"{REFERENCE}{secret}: {root / secret} leads out of {root}")
    return _read(secret, path, root / secret, is_credential=False)


def _read_credential(root: Path, secret: str) -> bytes | None:
    path = root / credential_of(secret)
    return _read(secret, path, path, is_credential=True)


def _read(secret: str, path: Path, called: Path, *, is_credential: bool) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SecretRefused(
            f"{REFERENCE}{secret}: {called} cannot be read by the user of this worker "
            f"({error.strerror}); make this user its owner (chown), or let it read the file"
        ) from None
    try:
        facts = os.fstat(descriptor)
        if stat.S_ISDIR(facts.st_mode):  # of secrets of others: not even that is told
            return None
        if not stat.S_ISREG(facts.st_mode):
            raise SecretRefused(f"{REFERENCE}{secret}: {called} is not a plain file")
        # systemd grants by an ACL, which looks like rights of a group.
        open_to = facts.st_mode & _OTHERS if is_credential else is_readable_by_others(facts)
        if open_to:
            raise SecretRefused(
                f"{REFERENCE}{secret}: {called} can be read by others, or does not belong to "
                f"the worker; chmod 600 {called}"
            )
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(VALUE_BYTES_MAX + 1)
    finally:
        os.close(descriptor)


def _text(secret: str, content: bytes) -> str:
    """Returns a value as a text for an environment, without the newline at its end."""
    if len(content) > VALUE_BYTES_MAX:
        raise SecretRefused(
            f"{REFERENCE}{secret} has more than {VALUE_BYTES_MAX} bytes; let the job read it "
            "from a file instead"
        )
    try:
        text = content.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise SecretRefused(
            f"{REFERENCE}{secret} is not UTF-8, which variables must be; store it as base64"
        ) from None
    if not text.strip():
        raise SecretRefused(f"{REFERENCE}{secret} is empty")
    if "\0" in text:
        raise SecretRefused(f"{REFERENCE}{secret} has a NUL, which no variable can hold")
    if text.count("\n") >= LINES_MAX:
        raise SecretRefused(f"{REFERENCE}{secret} has more than {LINES_MAX} lines")
    return text


def environment_of(task: Claimed, secrets: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that a task gives its command, with secrets in their places."""
    if task.environment is None:
        return {}
    told: dict[str, str] = json.loads(task.environment)
    return {
        name: secrets[name] if is_reference(value) else value for name, value in told.items()
    }
