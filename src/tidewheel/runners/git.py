"""Asks git for the files of one commit of a repository, with nothing of its user's settings.

The repository may be anybody's. Only its objects are taken, into a folder of ours that has no
hooks, no filters and no configuration; credential helpers, prompts and the user's own files
(.gitconfig, .netrc) are out of reach, and no transport is allowed but the one that was asked
for. What git writes and how long it takes are limited.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from tidewheel.lazy_dataclasses import NamedTuple

FETCHED_BYTES_MAX = 256 * 1024 * 1024  # of the objects of one commit
STDERR_BYTES_MAX = 64 * 1024
_READ_BYTES = 1024 * 1024
# What a way to the network may need, and says nothing about how git behaves.
_PASSED_ON = (
    *("PATH", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
)
_SETTINGS = (
    *("core.hooksPath=/dev/null", "credential.helper=", "core.askPass=", "core.pager=cat"),
    *("core.fsmonitor=false", "protocol.allow=never", "fetch.fsckObjects=false"),
    *("fetch.unpackLimit=1", "gc.auto=0", "maintenance.auto=false", "http.lowSpeedLimit=1"),
    *("http.lowSpeedTime=30", "advice.detachedHead=false", "submodule.recurse=false"),
)
_FATAL = re.compile(r"^(?:fatal|error|ERROR|remote): *(.+)$", re.MULTILINE)


class GitProblem(Exception):
    """git is not there, or did not do what it was asked for; the text is what it says."""


class GitMissing(GitProblem):
    """There is no git on this machine."""


class GitTooMuch(GitProblem):
    """It took too long, or is too large."""


class GitArchive(NamedTuple):
    """Holds the files of a commit as a tar, and says which commit it is."""

    commit: str
    content: bytes
    folder: str  # that the tar has the files of; "" is all


def fetch_archive(
    url: str, ref: str, folder: str, *, seconds_max: float, bytes_max: int
) -> GitArchive:
    """Returns the files of a folder as they are at a ref of a repository.

    ``folder`` may also be a file: then the folder is what the file lies in. Raises GitProblem.
    """
    with tempfile.TemporaryDirectory(prefix="tidewheel-git-") as home:
        asking = _Asking(Path(home), url.partition(":")[0], time.monotonic() + seconds_max)
        asking.git("init", "--quiet", "--bare", "--template=", "objects.git")
        said = ("--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-auto-gc")
        asking.git("fetch", *said, "--end-of-options", url, ref or "HEAD", in_repository=True)
        commit = asking.told("rev-parse", "--verify", "--quiet", "FETCH_HEAD^{commit}")
        if folder:
            kind = asking.told("cat-file", "-t", f"{commit}:{folder}")
            folder = folder.rpartition("/")[0] if kind == "blob" else folder
        # Under its own name, in a tar of its own: nothing beside it is unpacked.
        place = ("--", f":(literal){folder}") if folder else ()
        content = asking.git(
            "archive", "--format=tar", commit, *place, in_repository=True, bytes_max=bytes_max
        )
        return GitArchive(commit, content, folder)


class _Asking:
    """Runs git in a folder that holds nothing else, until a time."""

    def __init__(self, home: Path, transport: str, until: float) -> None:
        self._home, self._until = home, until
        kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        self._environment = {
            "PATH": os.defpath,
            **kept,
            "HOME": str(home),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
            "GIT_NO_LAZY_FETCH": "1",
        }
        settings = (*_SETTINGS, f"protocol.{transport}.allow=always")
        self._options = [word for one in settings for word in ("-c", one)]

    def told(self, *words: str) -> str:
        """Returns the word that git answers."""
        return self.git(*words, in_repository=True).decode().strip()

    def git(
        self, *words: str, in_repository: bool = False, bytes_max: int = _READ_BYTES
    ) -> bytes:
        """Returns what git prints; raises GitProblem if it fails, or prints too much."""
        where = ("--git-dir", "objects.git") if in_repository else ()
        with tempfile.TemporaryFile(dir=self._home) as errors:
            process = self._started(("git", *self._options, *where, *words), errors)
            try:
                printed = self._printed(process, bytes_max)
                status = process.wait(timeout=max(0.1, self._until - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise GitTooMuch("it took too long") from None
            finally:
                _end(process)
            errors.seek(0)
            said = errors.read(STDERR_BYTES_MAX).decode(errors="replace")
        if status:
            raise _problem(said)
        return printed

    def _started(self, words: Sequence[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
        try:
            process = subprocess.Popen(
                words,
                cwd=self._home,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise GitMissing("there is no git on this machine") from None
        if hasattr(resource, "prlimit"):  # what it starts later inherits it
            with contextlib.suppress(ProcessLookupError):
                most = (FETCHED_BYTES_MAX, FETCHED_BYTES_MAX)
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, most)
        return process

    def _printed(self, process: subprocess.Popen[bytes], bytes_max: int) -> bytes:
        """Returns all that a process prints. A timer ends one that prints nothing any more."""
        late = threading.Timer(max(0.1, self._until - time.monotonic()), _kill, (process,))
        late.daemon = True
        late.start()
        assert process.stdout is not None
        found = bytearray()
        try:
            while part := process.stdout.read1(_READ_BYTES):  # type: ignore[attr-defined]
                found += part
                if len(found) > bytes_max:
                    raise GitTooMuch(f"it has more than {bytes_max} bytes")
        finally:
            late.cancel()
        if time.monotonic() > self._until:
            raise GitTooMuch("it took too long")
        return bytes(found)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Ends git and all that it has started, unless it has ended."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes]) -> None:
    _kill(process)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def _problem(said: str) -> GitProblem:
    if "signal 25" in said or "File too large" in said:
        return GitTooMuch(f"it has more than {FETCHED_BYTES_MAX} bytes")
    found = [one.strip() for one in _FATAL.findall(said)]
    if (own := _FATAL.search(said)) and "read from remote repository" in own[0]:
        found[:0] = said[: own.start()].strip().splitlines()[-1:]  # what ssh says of it
    return GitProblem("; ".join(dict.fromkeys(found)) or said.strip() or "git failed")
