"""A throw-away PostgreSQL with durable settings: every system is measured with fsync on."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 30.0
SUPERUSER = "postgres"
SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "wal_level": "replica",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "30min",
    "max_connections": "200",
    "listen_addresses": "",
}


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """A running server: its unix socket, and the folder of its programs."""

    socket: Path
    programs: Path

    def url(self, database: str, scheme: str = "postgresql") -> str:
        """Where a client finds the database; the socket folder goes into the query part."""
        return f"{scheme}://{SUPERUSER}@/{database}?host={self.socket}"

    def fresh_database(self, database: str) -> str:
        """Drop the database if it is there, create it empty, answer its URL."""
        self._run("dropdb", "--if-exists", "--force", database)
        self._run("createdb", database)
        return self.url(database)

    def settle(self, database: str) -> None:
        """Give every peer the same start: statistics known, no checkpoint pending."""
        self._run("psql", "--quiet", "--command", "VACUUM ANALYZE", database)
        self._run("psql", "--quiet", "--command", "CHECKPOINT", database)

    def _run(self, program: str, *arguments: str) -> None:
        where = ["-h", str(self.socket), "-U", SUPERUSER]
        command = [str(self.programs / program), *where, *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class PostgresServer:
    """Starts in ``with``, is gone with its data after it; works as root and as anybody else."""

    def __init__(self, folder: Path) -> None:
        self._data = folder / "postgres"
        self._log = folder / "postgres.log"
        # A unix socket path may have 107 bytes, so it cannot live in the data folder.
        self._socket = Path(tempfile.mkdtemp(prefix="pg-"))
        self._programs = _program_folder()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> PostgresAddress:
        return PostgresAddress(self._socket, self._programs)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> PostgresServer:
        self._data.mkdir()
        identity = _server_identity(self._data, self._socket)
        initdb = [str(self._programs / "initdb"), "-D", str(self._data), "-U", SUPERUSER]
        options = ["-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run([*initdb, *options], check=True, stdout=subprocess.DEVNULL, **identity)
        settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
        server = [str(self._programs / "postgres"), "-D", str(self._data)]
        server += ["-k", str(self._socket)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*server, *settings], stdout=log, stderr=log, start_new_session=True, **identity
            )
        self._wait_until_ready()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._data, ignore_errors=True)
        shutil.rmtree(self._socket, ignore_errors=True)

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        question = [str(self._programs / "pg_isready"), "--quiet", "-h", str(self._socket)]
        deadline = time.monotonic() + START_SECONDS_MAX
        while subprocess.run(question, check=False).returncode != 0:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: {self._log.read_text()[-2000:]}")
            time.sleep(0.05)


def cpu_seconds(server_pid: int) -> float:
    """CPU of the server, its living children, and the children it has already reaped."""
    tick = os.sysconf("SC_CLK_TCK")
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, _, rest = stat.read_text().partition(" (")
        except OSError:
            continue  # it ended between the listing and the reading
        fields = rest.rpartition(") ")[2].split()
        parent, own, reaped = fields[1], fields[11:13], fields[13:15]
        if int(pid) == server_pid:
            total += sum(map(int, own)) + sum(map(int, reaped))
        elif int(parent) == server_pid:
            total += sum(map(int, own))
    return total / tick


def _program_folder() -> Path:
    """Where initdb and postgres are; Debian keeps them out of PATH and tells by pg_config."""
    if shutil.which("pg_config"):
        answer = subprocess.run(["pg_config", "--bindir"], check=False, capture_output=True)
        folder = Path(answer.stdout.decode().strip())
        if answer.returncode == 0 and (folder / "initdb").exists():
            return folder
    found = shutil.which("initdb")
    if found is None:
        raise RuntimeError("PostgreSQL is not installed: no initdb in PATH or by pg_config")
    return Path(found).resolve().parent


def _server_identity(*folders: Path) -> dict[str, Any]:
    """PostgreSQL refuses to run as root: then it becomes the user postgres."""
    if os.getuid() != 0:
        return {"cwd": "/"}
    user = pwd.getpwnam(SUPERUSER)
    for folder in folders:
        os.chown(folder, user.pw_uid, user.pw_gid)
        folder.chmod(0o755 if folder.name.startswith("pg-") else 0o700)
    for parent in folders[0].parents:
        if parent.name.startswith("bench-"):
            parent.chmod(0o755)  # mkdtemp closes it to the postgres user
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": "/"}
