"""Calls the docker command line, and says in plain words what it answered.

Arguments go without a shell, each call has a time limit, and only here it is decided whether a
call failed because the engine was away.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from tidewheel.errors import BadSetting, Unavailable
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.runners.containers.policy import SOCKETS
from tidewheel.runners.sanitize import printable, storable

CALL_SECONDS_MAX = 120.0
STOP_SECONDS_MAX = 1800.0  # beside the grace that containers have
CALLS_AT_ONCE_MAX = 8
WORDS_LENGTH_MAX = 700
INHERITED = frozenset({"PATH", "HOME", "LANG", "USER", "SSH_AUTH_SOCK", "COMPOSE_HTTP_TIMEOUT"})
INHERITED_PREFIXES = ("DOCKER_", "LC_")
# Words that docker prints when the engine does not answer, or stops answering.
AWAY_WORDS = (
    "cannot connect to the docker daemon",
    "couldn't connect to docker daemon",
    "error during connect",
    "is the docker daemon running",
    "connection refused",
    "connection reset",
    "connection aborted",
    "remote end closed connection",
    "unexpected eof",
    "broken pipe",
    "daemon is shutting down",
    "dial unix",
    "context deadline exceeded",
    "the swarm does not have a leader",
    "code = unavailable",
    "read timed out",
)


class EngineAway(Unavailable):
    """The engine does not answer; what runs on it may run on, and nobody may judge it."""

    code = "engine_away"


class CallTooSlow(EngineAway):
    """A program did not come to its end in the time that it had."""


def json_format(fields: Iterable[str]) -> str:
    """Returns a ``--format`` of docker that prints these fields, a row as one JSON array."""
    return f"[{','.join(f'{{{{json {one}}}}}' for one in fields)}]"


def json_rows(text: str) -> list[Any]:
    """Returns the JSON values that docker has printed, one in each line."""
    return [json.loads(line) for line in text.splitlines() if line.strip()]


@dataclass(frozen=True, slots=True)
class DockerAnswer:
    """Holds the exit status of a program, and what it printed."""

    status: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """Returns why the program failed, fit to be shown."""
        said = " ".join((self.err.strip() or self.out.strip()).split())
        return printable(storable(said, WORDS_LENGTH_MAX)) or f"exit status {self.status}"


def _may_write(path: str, uid: int, groups: Sequence[int]) -> bool:
    """Says whether a user may write to a socket that is not the user's own."""
    try:
        facts = os.stat(path)
    except OSError:
        return False
    by_group = facts.st_gid in groups and facts.st_mode & stat.S_IWGRP
    return facts.st_uid != uid and bool(by_group or facts.st_mode & stat.S_IWOTH)


class Cli:
    """Calls docker and docker-compose, in an environment from an allow-list."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environment = {
            name: value
            for name, value in environ.items()
            if name in INHERITED or name.startswith(INHERITED_PREFIXES)
        }
        self.environment.setdefault("PATH", os.defpath)
        path = self.environment["PATH"]
        docker = shutil.which("docker", path=path)
        if docker is None:
            raise BadSetting("PATH", path, "a PATH with the program docker")
        self.docker = docker
        program = shutil.which("docker-compose", path=path)
        self.is_compose_2 = has_compose_2(self.environment)
        self.compose: tuple[str, ...] = (program,) if program else (docker, "compose")
        # A docker that listens or makes containers must not outlive a worker that was killed:
        # another worker would remove what is there while this docker goes on to make more.
        setpriv = shutil.which("setpriv", path=path)
        self.tied = () if setpriv is None else (setpriv, "--pdeathsig", "KILL", "--")
        self._room = asyncio.Semaphore(CALLS_AT_ONCE_MAX)

    @property
    def sockets(self) -> tuple[str, ...]:
        """Returns the engine's socket on this host, if DOCKER_HOST names one."""
        kind, _, path = self.environment.get("DOCKER_HOST", "").partition("://")
        return (os.path.normpath(path),) if kind == "unix" else ()

    def speakers(self, users: Iterable[str] | None = None) -> list[str]:
        """Returns those of these users that may speak to the engine; None: this process's user.

        Root, who needs no engine, is not among them, nor the owner of an engine without root.
        """
        known = [(str(os.geteuid()), os.geteuid(), [os.getegid(), *os.getgroups()])]
        if users is not None:
            found = map(pwd.getpwnam, users)
            known = [
                (one.pw_name, one.pw_uid, os.getgrouplist(one.pw_name, one.pw_gid))
                for one in found
            ]
        kind, _, _ = self.environment.get("DOCKER_HOST", "unix").partition("://")
        paths = self.sockets or SOCKETS
        return [
            name
            for name, uid, groups in known
            if uid != 0
            and (kind != "unix" or any(_may_write(path, uid, groups) for path in paths))
        ]

    def plain_environment(self) -> dict[str, str]:
        """Returns the environment for a program that speaks to no engine.

        It has nothing in it that stages may not see.
        """
        names = ("PATH", "HOME", "LANG", "DOCKER_CONFIG")  # the last: where plugins may lie
        return {name: self.environment[name] for name in names if name in self.environment}

    def check_compose(self, runner: str) -> None:
        """Raises BadSetting if neither a program nor a plugin here reads compose files."""
        if not self.is_compose_2:
            return
        asked = subprocess.run(
            (*self.compose, "version"),
            env=self.environment,
            capture_output=True,
            timeout=CALL_SECONDS_MAX,
            check=False,
        )
        if asked.returncode != 0:
            accepted = "docker-compose on the PATH, or docker with the plugin `docker compose`"
            raise BadSetting("runner", runner, accepted)

    async def ask(self, *arguments: str) -> str:
        """Returns what docker prints; raises EngineAway if docker fails for any reason."""
        answer = await self.call(self.docker, *arguments)
        if answer.status != 0:
            raise EngineAway(f"docker {arguments[0]}: {answer.words}")
        return answer.out

    async def inspect(
        self, how: Iterable[str], fields: Iterable[str], ids: Iterable[str]
    ) -> list[Any]:
        """Returns a row of these fields for each id; those that are gone have no row."""
        answer = await self.call(self.docker, *how, "--format", json_format(fields), *ids)
        return json_rows(answer.out)

    async def call(
        self,
        *argv: str,
        environment: Mapping[str, str] | None = None,
        seconds_max: float = CALL_SECONDS_MAX,
    ) -> DockerAnswer:
        """Runs a program to its end; raises EngineAway if the engine was not there."""
        async with self._room, child(argv, environment or self.environment) as process:
            try:
                async with asyncio.timeout(seconds_max):
                    printed = await process.communicate()
            except TimeoutError:
                words = f"{argv[0]} did not answer within {seconds_max:g} s"
                raise CallTooSlow(words) from None
            assert process.returncode is not None
            out, err = (text.decode(errors="replace") for text in printed)
            answer = DockerAnswer(process.returncode, out, err)
        said = answer.err.lower()
        about_registry = "/v2/" in said or "registry" in said  # which is not the engine
        is_away = not about_registry and any(one in said for one in AWAY_WORDS)
        if answer.status != 0 and is_away:
            raise EngineAway(f"the container engine does not answer: {answer.words}")
        return answer

    @asynccontextmanager
    async def following(self, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """Runs a docker that only listens while the `with` block lasts.

        It dies with this worker.
        """
        argv = (*self.tied, self.docker, *arguments)
        async with child(argv, self.environment) as process:
            yield process


def has_compose_2(environ: Mapping[str, str]) -> bool:
    """Says whether compose files are read here by docker compose 2: the plugin, or a program of
    that version. That of version 1 is nearly always a script, and slow to be asked."""
    path = environ.get("PATH", os.defpath)
    program = shutil.which("docker-compose", path=path)
    if program is None:
        return shutil.which("docker", path=path) is not None  # the plugin: see check_compose
    try:
        with open(program, "rb") as file:
            if file.read(2) == b"#!":
                return False
        asked = subprocess.run(
            (program, "version", "--short"),
            env={"PATH": path},
            capture_output=True,
            timeout=CALL_SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.stdout.decode(errors="replace").strip().removeprefix("v").startswith("2.")


@asynccontextmanager
async def child(
    argv: tuple[str, ...], environment: Mapping[str, str]
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Starts a process, and kills it at the end of the `with` block if it has not ended."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        process_group=0,  # Ctrl-C is for the worker: what it has begun here, it ends
    )
    try:
        # asyncio's own kill() would reap a child that has just ended, behind its own back.
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        descriptor = None
    try:
        yield process
    finally:
        if process.returncode is None:
            if descriptor is not None:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            # A pipe that nobody reads keeps a process from being over, for asyncio.
            await process.communicate()
        if descriptor is not None:
            os.close(descriptor)


GRACE_SECONDS_MAX = 86_400
_IMAGE_WORDS = (
    "pull access denied",
    "manifest unknown",
    "manifest for",
    "no such image",
    "registry",
    "/v2/",
    "image not found",
)


# Lines that docker-compose prints whatever happens; they say nothing about a failure.
_CHATTER = (
    "Creating ",
    "Pulling ",
    "The Docker Engine you're using is running in swarm mode",
    "Compose does not use swarm mode",
    "To deploy your application across the swarm",
    "Since --detach=false was not specified",  # of each service of a stack
    "In a future release, --detach=false will",
)


# What version 2 says of each step: the image or container `a` is being fetched or made.
_STEP = re.compile(r"(?:\w+ )?\S+ {1,2}(?:Pulling|Pulled|Creating|Created|Interrupted)")
_TRACE = "Traceback (most recent call last):"  # of docker-compose's own inside


def without_chatter(text: str) -> str:
    """Returns the lines that say why something failed; all lines, if none of them does."""
    lines = text.partition(_TRACE)[0].splitlines()
    telling = [
        one
        for one in lines
        if not one.strip().startswith(_CHATTER) and not _STEP.fullmatch(one.strip())
    ]
    return "\n".join(telling) if any(one.strip() for one in telling) else text


def is_about_an_image(words: str) -> bool:
    """Says whether the words are about an image that is missing and could not be fetched."""
    lower = words.lower()
    return any(one in lower for one in _IMAGE_WORDS)


def create_words(words: str, images: Collection[str] = ()) -> str:
    """Returns a sentence on why a project with these images could not be made.

    ``words`` are docker's.
    """
    if is_about_an_image(words):
        if images and not any(name in words for name in images):
            words = f"{', '.join(images)}: {words}"
        return (
            f"an image is missing on this machine and could not be fetched: {words}; check its "
            "name, or load it on the machine (docker load, docker pull)"
        )
    return f"docker refused to create the containers of the stage: {words}"


def whole_seconds(grace_seconds: float) -> int:
    """Returns a grace in whole seconds, as docker takes it: rounded up, and bounded."""
    return min(max(0, math.ceil(grace_seconds)), GRACE_SECONDS_MAX)
