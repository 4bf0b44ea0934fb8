"""Has jobs started as other users than their worker's, by the launcher (``worker --run-as``).

A worker that is started as root starts the launcher, which stays root, and then gives up its
own rights. It can neither signal the jobs nor look into them: the launcher ends what it has
started.

Folders are the worker's and carry the group of the job's user:

    home, folders of queues and runs    everybody may pass through, nobody may list them
    the folder of a run                 its user may look
    an attempt                          its user may write
    work and share of a run             all in there is its user's

What the worker writes there may be read by everybody who gets there. The sticky bit keeps jobs
from replacing the worker's files and folders, and no link is followed on the way to a folder: a
job must not lead its worker to what is another's. Whose group a folder of a run has once, no
other user's job is started in it.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import pwd
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidewheel.core.operator.definition import RUN_DIRECTORY, read_job_name
from tidewheel.core.queue.requests import Claimed
from tidewheel.errors import BadSetting, LauncherLost, Refused
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.runners import Assignment
from tidewheel.runners import launcher
from tidewheel.runners.job_directory import open_files_to_job_users
from tidewheel.runners.processes import ProcessId, ProcessTree, all_ended

ANSWER_SECONDS_MAX = 10.0
END_SECONDS_MAX = 15.0
ANSWER_BYTES_MAX = 65_536
ACCEPTED = 'worker = "USER", and [jobs] with "PATTERN" = "USER"'


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAsMap:
    """Says which user a worker is, and which users its jobs are: the first pattern counts."""

    worker: pwd.struct_passwd
    jobs: tuple[tuple[str, str], ...]  # patterns of names of runs and queues, and users


def read_map(path: Path) -> RunAsMap:
    """Returns the map in a file; raises BadSetting if it would not keep users apart."""
    import tomllib

    try:
        with path.open("rb") as file:
            facts, document = os.fstat(file.fileno()), tomllib.load(file)
    except (OSError, ValueError) as error:
        raise BadSetting("run-as", path, f"a file with {ACCEPTED} ({error})") from error
    if facts.st_uid != 0 or facts.st_mode & 0o022:
        raise BadSetting(
            "run-as", path, "a file that belongs to root and that only root may write"
        )
    jobs = document.get("jobs")
    if document.keys() != {"worker", "jobs"} or not isinstance(jobs, dict) or not jobs:
        raise BadSetting("run-as", path, ACCEPTED)
    own = known_user("run-as", document["worker"])
    users = {known_user("run-as", name) for name in jobs.values()}
    for one, other in itertools.product(users, {own, *users}):
        shares = other.pw_gid in os.getgrouplist(one.pw_name, one.pw_gid)
        if one.pw_uid == own.pw_uid or (one.pw_uid != other.pw_uid and shares):
            raise BadSetting(
                "run-as",
                one.pw_name,
                "users for jobs that differ from the worker's user, and that are not in each "
                "other's groups: "
                f"files of {one.pw_name} and {other.pw_name} would not be protected from "
                "each other",
            )
    return RunAsMap(worker=own, jobs=tuple(jobs.items()))


def known_user(setting: str, name: object) -> pwd.struct_passwd:
    """Returns a user of this machine; raises BadSetting if there is none, or it is root."""
    try:
        user = pwd.getpwnam(str(name))
    except KeyError:
        raise BadSetting(setting, name, "a user of this machine; make it: useradd") from None
    if 0 in (user.pw_uid, *os.getgrouplist(user.pw_name, user.pw_gid)):
        raise BadSetting(setting, name, "a user that is not root, nor in root's group")
    return user


class LauncherClient:
    """Asks the launcher, which answers one request after the other."""

    def __init__(
        self, asking: socket.socket, answer_seconds_max: float = ANSWER_SECONDS_MAX
    ) -> None:
        self._asking = asking
        asking.settimeout(answer_seconds_max)

    def ask(self, request: Mapping[str, Any], files: Sequence[int] = ()) -> ProcessId:
        """Returns the process that was started for a request; raises Refused if there is none,
        and OSError if this machine could not start it.

        An answer that comes late would be taken for that to the next request, and a job for
        another one. So that request was the last: LauncherLost is raised, now and later, which
        ends the worker; the launcher ends what it started meanwhile, and what must not outlive
        the worker.
        """
        text = os.memfd_create("request")
        try:
            os.write(text, json.dumps(request).encode())
            socket.send_fds(self._asking, [b"?"], [text, *files])
            answer = json.loads(self._asking.recv(ANSWER_BYTES_MAX))
        except (OSError, ValueError) as error:
            self._asking.close()
            raise LauncherLost from error
        finally:
            os.close(text)
        if (number := answer.get("errno")) is not None:
            raise OSError(int(number), str(answer["refused"]))
        if "refused" in answer:
            raise Refused(str(answer["refused"]))
        return ProcessId(pid=int(answer["pid"]), started=int(answer["started"]))


class JobUsers:
    """Starts and ends jobs as the users of a map, through the launcher."""

    def __init__(self, path: Path) -> None:
        """Starts the launcher, and gives up root for the worker's user."""
        if os.geteuid() != 0:
            accepted = "a worker that root starts; it becomes the user that the map names"
            raise BadSetting("run-as", path, accepted)
        users = read_map(path)
        asking, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._launcher = LauncherClient(asking)
        own = {"worker_uid": users.worker.pw_uid, "worker_gid": users.worker.pw_gid}
        with theirs:
            self._process = subprocess.Popen(
                (
                    sys.executable,
                    "-I",
                    launcher.__file__,
                    json.dumps(own | {"jobs": users.jobs}),
                ),
                stdin=theirs.fileno(),
                env={},
                cwd="/",
                start_new_session=True,  # a signal for the worker's group is not meant for it
            )
        self.names = frozenset(name for _, name in users.jobs)
        become_user(users.worker)
        open_files_to_job_users()

    def start(
        self,
        home: Path,
        assignment: Assignment,
        words: Sequence[str],
        environment: Mapping[str, str],
        logs: tuple[Path, Path],
    ) -> ProcessId:
        """Starts the shell with these words as the user of the task; returns its identity.

        Raises Refused if the map has no user for it.
        """
        folders = hand_over(home, assignment)
        opened = []
        try:
            for log in logs:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
                opened.append(os.open(log, flags, 0o600))
                os.fchmod(opened[-1], 0o660)
            task = assignment.task
            request: dict[str, Any] = {"name": _name(task), "fenced": task.fence_kill}
            request |= {"words": words, "environment": environment}
            return self._launcher.ask(request, [*opened, *opened, *folders])
        finally:
            for file in (*folders, *opened):
                os.close(file)

    async def end(self, task: Claimed, tree: ProcessTree, number: signal.Signals) -> None:
        """Has a process of root, which no job can end, signal all of a job's processes."""
        leader = tree.leader.process
        request = {"name": _name(task), "end": (leader.pid, leader.started, int(number))}
        ender = self._launcher.ask(request)
        if not await all_ended([ender], END_SECONDS_MAX):
            raise TimeoutError(f"the job's processes were not signalled in {END_SECONDS_MAX} s")


def become_user(user: pwd.struct_passwd) -> None:
    """Makes this process one of a user, for good."""
    launcher.become(user)
    os.environ |= {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}


def _name(task: Claimed) -> str:
    """Returns the name by which the map finds the user of a task."""
    return task.queue if task.run is None else read_job_name(task.id).run


_PASSED, _LOOKED_AT, _READ, _WRITTEN, _GIVEN = 0o711, 0o755, 0o750, 0o1770, 0o770
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def hand_over(home: Path, assignment: Assignment) -> list[int]:
    """Makes and opens the folders of a job whose group shall be that of its user.

    Raises PermissionError if one of them is not the worker's own.
    """
    ways = {assignment.directory: assignment.directory}  # and from which on it may be written
    run = None
    if (named := assignment.environment.get(RUN_DIRECTORY)) is not None:
        run, name = Path(named), read_job_name(assignment.task.id)
        given = {folder: folder for folder in _given(run)}
        ways = {assignment.directory: run / name.log_folder(1)} | given
    opened: list[int] = []
    try:
        for folder, written_from in ways.items():
            _open_way(home, _modes(home, folder, written_from, run), opened)
    except BaseException:
        for one in opened:
            os.close(one)
        raise
    return opened


def _given(run: Path) -> tuple[Path, ...]:
    """Returns the folders of a run in which all is its user's; a scheduler beside this worker
    may have made the last of them, else it is the user's, too."""
    work, share, cycles = run / "work", run / "share", run / "share" / "cycle"
    with suppress(OSError):
        if os.lstat(cycles).st_uid == os.geteuid():
            return work, share, cycles
    return work, share


def own_folders(assignment: Assignment) -> tuple[str, str]:
    """Returns the folders that a job of a run makes for itself, to work in and for its cycle
    point; empty texts for a job that belongs to none."""
    if (run := assignment.environment.get(RUN_DIRECTORY)) is None:
        return "", ""
    name = read_job_name(assignment.task.id)
    return str(Path(run, name.work_folder)), str(Path(run, name.share_folder))


def make_way(home: Path, assignment: Assignment) -> None:
    """Makes the folders of a job; what is written to them then goes where it should."""
    for folder in hand_over(home, assignment):
        os.close(folder)


def open_to_jobs(home: Path, listening: Path, programs: Path) -> None:
    """Lets jobs speak to the worker's socket, and start the programs that it has for them."""
    for folder in (listening.parent, programs):
        _open_way(home, [(folder.name, _PASSED)], [])
    listening.chmod(0o666)  # whoever speaks needs the secret of an attempt
    for program in programs.iterdir():
        program.chmod(0o755)


def _modes(
    home: Path, folder: Path, written_from: Path, run: Path | None
) -> list[tuple[str, int]]:
    """Returns the names from the home to a folder, each with the mode that it gets."""
    steps, here = [], home
    for name in folder.relative_to(home).parts:
        here /= name
        mode = _PASSED if run is None or not here.is_relative_to(run) else _LOOKED_AT
        mode = _READ if here == run else mode
        mode = _WRITTEN if here.is_relative_to(written_from) else mode
        steps.append((name, _GIVEN if run is not None and here in _given(run) else mode))
    return steps


def _open_way(home: Path, steps: Sequence[tuple[str, int]], kept: list[int]) -> None:
    """Steps through folders, making those that are missing; keeps those for the user open."""
    here = os.open(home, _FOLDER)
    try:
        _set_mode(here, _PASSED)
        for name, mode in steps:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=here)
            below = os.open(name, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
            if os.fstat(here).st_uid != os.geteuid():
                raise PermissionError(errno.EPERM, "a folder is not the worker's own", name)
            _set_mode(here, mode)
            if mode in (_READ, _WRITTEN, _GIVEN):
                kept.append(os.dup(here))
    finally:
        os.close(here)


def _set_mode(folder: int, mode: int) -> None:
    if stat.S_IMODE(os.fstat(folder).st_mode) != mode:
        os.fchmod(folder, mode)
