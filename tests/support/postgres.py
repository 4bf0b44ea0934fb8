"""A private PostgreSQL server that a test may clone databases in, crash and start again.

It listens on a unix socket in a folder of its own, so any number run side by side. PostgreSQL
refuses to serve as root: then it runs as the user `postgres`, and the folder is given to that
user. The server stays in our process group, so that whoever ends a suite ends it too.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from tests.support.patience import allowed
from tests.support.postgres_binaries import find_binaries

READY_SECONDS_MAX = 60
STOP_SECONDS_MAX = 30
POLL_SECONDS = 0.01
# A new cluster takes 40 MB, and containers often have 64 MB of /dev/shm in all.
MEMORY_BYTES_MIN = 2**30

INITDB_OPTIONS = (
    *("--username=postgres", "--auth=trust"),  # the folder of the socket is the lock
    *("--encoding=UTF8", "--locale=C", "--no-sync"),
)
# What every server here is told. Little memory and little log: a cluster lives for one session.
SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "32MB",
    "max_wal_size": "256MB",
    "min_wal_size": "32MB",
}
# Durable is what production must have and what the store insists on; in /dev/shm it is cheap.
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class PostgresServer:
    """One cluster and the server process over it."""

    def __init__(self, *, durable: bool = True) -> None:
        self._binaries = find_binaries()
        self._settings = SETTINGS | (DURABLE if durable else NOT_DURABLE)
        self._folder = _new_folder()
        self._process: subprocess.Popen[bytes] | None = None
        self._templates: dict[Callable[[str], None], str] = {}
        initdb = [self._binaries / "initdb", "--pgdata", self._data, *INITDB_OPTIONS]
        _run_as_server(initdb)
        self.start()

    @classmethod
    @contextmanager
    def running(cls, *, durable: bool = True) -> Iterator[PostgresServer]:
        """A server for the length of a `with` block."""
        server = cls(durable=durable)
        try:
            yield server
        finally:
            server.stop()

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    def dsn(self, database: str = "postgres") -> str:
        """The address of a database, as libpq and `--store` take it."""
        return (
            f"postgresql://postgres@/{quote(database)}?host={quote(str(self._folder), safe='')}"
        )

    def create_database(self, name: str, template: str | None = None) -> str:
        """Make a database, empty or as a copy of another, and answer with its address."""
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        self._administer(
            statement.format(sql.Identifier(name), sql.Identifier(template or "template1"))
        )
        return self.dsn(name)

    def drop_database(self, name: str) -> None:
        """Remove a database, and end whoever is still connected to it."""
        statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        self._administer(statement.format(sql.Identifier(name)))

    def template(self, prepare: Callable[[str], None]) -> str:
        """The database that ``prepare`` has filled, made once; a copy of it costs 20 ms."""
        if prepare not in self._templates:
            name = f"template_{len(self._templates) + 1}"
            prepare(self.create_database(name))
            self._templates[prepare] = name
        return self._templates[prepare]

    def start(self) -> None:
        """Start the server and wait until it answers."""
        assert self._process is None
        options = [f"--{name}={value}" for name, value in self._settings.items()]
        with self._log.open("ab") as log:
            self._process = _popen_as_server(
                [self._binaries / "postgres", "-D", self._data, "-k", self._folder, *options],
                stdout=log,
                stderr=log,
            )
        self._wait_until_ready()

    def crash(self) -> None:
        """Let every server process exit at once, as `pg_ctl stop -m immediate` does."""
        self._end(signal.SIGQUIT)

    def restart_immediately(self) -> None:
        """Crash and start again: what was committed must still be there."""
        self.crash()
        self.start()

    def stop(self) -> None:
        """End the server, if it runs, and remove its cluster."""
        if self._process is not None:
            self._end(signal.SIGINT)
        shutil.rmtree(self._folder)

    def _end(self, with_signal: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(with_signal)
        try:
            self._process.wait(allowed(STOP_SECONDS_MAX))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + allowed(READY_SECONDS_MAX)
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                psycopg.connect(self.dsn()).close()
            except psycopg.OperationalError:
                time.sleep(POLL_SECONDS)
            else:
                return
        log = self._log.read_text(encoding="utf-8", errors="replace")
        self.stop()
        raise RuntimeError(f"PostgreSQL did not start:\n{log}")

    def _administer(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(statement)


def _new_folder() -> Path:
    """A folder the server's user can use: in memory if there is room, for speed."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free >= MEMORY_BYTES_MIN
    # Short: the path of a unix socket may have 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="tidewheel-pg-", dir=memory if roomy else None))
    if os.getuid() == 0:
        account = _account()
        os.chown(folder, account.pw_uid, account.pw_gid)
    return folder


def _account() -> pwd.struct_passwd:
    """Who serves when we are root. The wheel of the last resort brings no user of its own."""
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def _popen_as_server(command: list[str | Path], **options: object) -> subprocess.Popen[bytes]:
    if os.getuid() == 0:
        account = _account()
        options |= {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    # Our working folder may be closed to that user.
    return subprocess.Popen(command, cwd="/", stdin=subprocess.DEVNULL, **options)


def _run_as_server(command: list[str | Path]) -> None:
    process = _popen_as_server(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{output.decode(errors='replace')}")
