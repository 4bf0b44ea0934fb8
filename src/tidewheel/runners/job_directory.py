"""Writes and reads the files of one attempt: what a job is given, and what it leaves.

``job``           the command as it was submitted, run by bash
``spec.json``     the task's spec, if it has one
``inputs.json``   the values of the tasks that it needs, or, in a run, that come before it
``job.out/.err``  what the job printed
``outputs.json``  the JSON object that it wrote to ``$TIDEWHEEL_OUTPUTS`` for those after it
``job.status``    ``pid=… start=… boot=…`` when it begins, ``exit=…`` when it ended; the time
                  of the end is the file's own. An adopter of the job reads its end here,
                  as only a parent is told the exit status by the kernel
``job.messages``  what the job said, see ``messages.client``
``job.socket``    a link to where its worker listens, if it was adopted; one that was not is
                  told by its environment
``job.leader``    for jobs of other users, what ``job.status`` says first, by the worker
Nothing is synced to disk: after a power loss there is no job to adopt, and everything here
that matters is in the store.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from tidewheel.core.operator.definition import (
    LATER_ATTEMPT,
    LATEST,
    RUN_DIRECTORY,
    read_job_name,
)
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.runners import Assignment
from tidewheel.runners.messages.client import SPOOL_NAME
from tidewheel.runners.processes import ProcessId
from tidewheel.runners.sanitize import printable, storable

OUTPUTS = "TIDEWHEEL_OUTPUTS"
INPUTS = "TIDEWHEEL_INPUTS"
INPUTS_NAME = "inputs.json"  # the values of the tasks before it
OUTPUTS_NAME = "outputs.json"  # the values that the job hands to the tasks after it
STATUS_NAME = "job.status"
SCRIPT_NAME, SPEC_NAME, OUT_NAME, ERR_NAME = "job", "spec.json", "job.out", "job.err"
_LINKED = (SCRIPT_NAME, OUT_NAME, ERR_NAME, STATUS_NAME)  # where a first attempt has them
SECRET_LENGTH_MAX = 1_000
STATUS_BYTES_MAX = 65_536
TAIL_BYTES_MAX = 4096
LAST_LINE_LENGTH_MAX = 300

StrPath = str | Path  # text on the way of every job: to make a Path costs more than to open it


# For a wrapper in sh, which has the status of its job in `code`: how a job of a run ended, in
# the words of Cylc's jobs, unless the job has said so itself; then no process is started here.
# A part of a job that ended its shell without an error makes no success of the later ones, and
# a process of a function that ended without an error no success of the function.
WRITE_EXIT = """\
begun= said= to_come= to_return=
[ ! -r job.status ] || while read -r line; do
  case $line in
    CYLC_JOB_INIT_TIME=*) begun=1 ;;
    TIDEWHEEL_JOB_TO_COME=*) to_come=${line#*=} ;;
    TIDEWHEEL_TO_RETURN=*) to_return=${line#*=} ;;
    CYLC_JOB_EXIT=*) said=1 ;;
  esac
done < job.status
if [ "$code" -eq 0 ] && [ -n "$to_return" ]; then
  code=1 said= to_come=
  echo "the function of $to_return did not return: os._exit(), os.exec…() or a C library" \
    "that calls exit() ended its process without an error; return from the function, and" \
    "start programs with subprocess.run(…, check=True)" >&2
fi
if [ "$code" -eq 0 ] && [ -n "$to_come" ] && [ -z "$said" ]; then
  code=1
  echo "the job was ended without an error before its $to_come (by exit 0 or exec)" >&2
fi
if [ -n "$begun" ] && [ -z "$said" ]; then
  how=SUCCEEDED
  [ "$code" -eq 0 ] || how=ERR
  [ "$code" -le 128 ] || how=$(kill -l "$code" 2> /dev/null) || how=ERR
  {
    echo "CYLC_JOB_EXIT=$how"
    date -u +CYLC_JOB_EXIT_TIME=%Y-%m-%dT%H:%M:%SZ
  } >> job.status
fi
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """Holds what ``job.status`` says; None stands for what is not, or not wholly, written."""

    process: ProcessId | None = None
    boot_id: str = ""
    exit_status: int | None = None
    was_signalled: bool = False  # before it ended; only jobs of other engines say so


class _File:
    """Gives a JobDirectory an attribute that is the path of a file in it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, directory: JobDirectory, _of: object = None) -> Path:
        return Path(directory.folder, self._name)


@dataclass(frozen=True, slots=True)
class JobDirectory:
    """Knows where the files of an attempt are."""

    folder: StrPath
    script = _File(SCRIPT_NAME)  # the command, which bash runs
    spec = _File(SPEC_NAME)  # of the task
    out, err = _File(OUT_NAME), _File(ERR_NAME)  # what the job prints
    secret = _File("job.secret")  # kept only where jobs are of other users
    leader = _File("job.leader")  # there, too: which process the job is, if it says otherwise
    status = _File(STATUS_NAME)  # which process the job is, and how it ended

    @property
    def path(self) -> Path:
        return Path(self.folder)

    def write_job(self, command: str, spec: str | None, inputs: str | None = None) -> None:
        """Makes the directory and puts the command, the spec and the inputs into it."""
        folder = str(self.folder)
        parent, _, name = folder.rpartition("/")
        is_new = _make(parent)  # first: that of a task's first attempt is not there
        if is_new and name.startswith(LATER_ATTEMPT):
            _link_files(parent, name)
        write = write_new
        if not make_private_directory(folder):
            write = write_whole
            _unlink_files(folder)
        if spec is not None:
            write(f"{folder}/{SPEC_NAME}", spec.encode(), mode=0o600)
        if inputs is not None:
            write(f"{folder}/{INPUTS_NAME}", inputs.encode() + b"\n", mode=0o600)
        write(f"{folder}/{SCRIPT_NAME}", command.encode() + b"\n", mode=0o700)

    def write_secret(self, secret: str) -> None:
        """Keeps the attempt's secret for an adopter, who cannot read the environment of a job
        of another user; and makes the spool, to which both of them write, and the file for the
        leader: once it is there, no job can put something else in its place."""
        write_whole(self.secret, secret.encode(), mode=0o600)
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW
        spool = os.open(f"{self.folder}/{SPOOL_NAME}", flags, 0o600)
        os.fchmod(spool, 0o666)
        os.close(spool)
        os.close(os.open(self.leader, flags | os.O_TRUNC, 0o600))

    def write_leader(self, leader: ProcessId, boot: str) -> None:
        """Keeps for an adopter which process a job of another user is."""
        line = f"pid={leader.pid} start={leader.started} boot={boot}\n"
        opened = os.open(self.leader, os.O_WRONLY | os.O_NOFOLLOW)
        try:
            os.write(opened, line.encode())
        finally:
            os.close(opened)

    def read_secret(self) -> str:
        """Returns the secret that was kept for an adopter; "" if there is none."""
        return read_plain(self.secret, SECRET_LENGTH_MAX).decode("ascii", errors="replace")

    def read_status(self) -> JobStatus:
        """Returns what ``job.status`` says; a line that is not complete counts for nothing.

        If the file cannot be read, every field has its default. What its worker kept of a job
        of another user counts before what the job says.
        """
        said, kept = (
            parse_status(read_plain(path, STATUS_BYTES_MAX).decode("ascii", errors="replace"))
            for path in (self.status, self.leader)
        )
        if kept.process is None:
            return said
        return replace(said, process=kept.process, boot_id=kept.boot_id)


def parse_status(text: str) -> JobStatus:
    """Returns what the complete lines of ``job.status`` say."""
    complete = text[: text.rfind("\n") + 1]
    facts = dict(word.split("=", 1) for word in complete.split() if "=" in word)
    process, exit_status = None, None
    with suppress(KeyError, ValueError):
        process = ProcessId(pid=int(facts["pid"]), started=int(facts["start"]))
    with suppress(KeyError, ValueError):
        exit_status = int(facts["exit"])
    return JobStatus(
        process=process,
        boot_id=facts.get("boot", ""),
        exit_status=exit_status,
        was_signalled="asked" in facts,
    )


def make_private_directory(path: StrPath) -> bool:
    """Makes a directory, and those above it, that only this user may enter.

    If the directory exists, it is closed to other users. Returns whether it is new.
    """
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        os.chmod(path, 0o700)
        return False
    except FileNotFoundError:
        make_private_directory(os.path.dirname(path))
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:  # by another worker of this machine
            return False
    return True


# Where jobs are of other users than their worker, folders keep strangers out: files are open.
_files_for = {"others": 0}


def open_files_to_job_users() -> None:
    """Lets job users read, from now on, the files that this worker writes for their jobs.

    Each job is handed its folders (``hand_over``), which nobody else may enter.
    """
    _files_for["others"] = 0o055
    os.umask(0o022)


def write_whole(path: StrPath, content: bytes, *, mode: int) -> None:
    """Writes a file so that nobody ever sees half of it, even if several write it at once."""
    written = _beside(path)
    try:
        write_new(written, content, mode=mode)
        os.rename(written, path)
    except OSError:
        with suppress(OSError):
            os.unlink(written)
        raise


def write_new(path: str, content: bytes, *, mode: int) -> None:
    """Writes a file that is not there yet; nobody else looks for it before it is whole."""
    mode |= (mode >> 3 | mode >> 6) & _files_for["others"]
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        while content:  # at once, unless the disk is full
            content = content[os.write(descriptor, content) :]
    finally:
        os.close(descriptor)


def link_whole(path: StrPath, target: StrPath) -> None:
    """Makes a symbolic link, in place of one that may be there."""
    try:
        os.symlink(target, path)
    except FileExistsError:
        written = _beside(path)
        os.symlink(target, written)
        os.rename(written, path)


def _beside(path: StrPath) -> str:
    """Returns an unused name beside a path, as workers of one home write the same files."""
    return f"{path}.{os.urandom(4).hex()}.new"


def last_line(path: StrPath) -> str:
    """Returns the last line with anything on it, safe to show; empty if there is none."""
    written = [line.strip() for line in tail(path).splitlines() if line.strip()]
    return printable(storable(written[-1], LAST_LINE_LENGTH_MAX)) if written else ""


def tail(path: StrPath) -> str:
    """Returns the end of a file, as it is; empty if the file cannot be read."""
    return read_plain(path, TAIL_BYTES_MAX, from_end=True).decode(errors="replace")


def read_plain(
    path: StrPath, bytes_max: int, *, from_end: bool = False, at: int | None = None
) -> bytes:
    """Returns the beginning or the end of a plain file; empty if it cannot be read, or is none.

    A job may have put anything there (``open_plain_file``). ``at`` is its folder, if that is
    open.
    """
    try:
        with open_plain_file(path, at) as descriptor:
            size = os.fstat(descriptor).st_size
            begin = max(0, size - bytes_max) if from_end else 0
            return os.pread(descriptor, bytes_max, begin)
    except OSError:
        return b""


@contextmanager
def open_plain_file(path: StrPath, at: int | None = None) -> Iterator[int]:
    """Opens a file that a job may have made, for the block, as ``open_plain`` does."""
    descriptor = open_plain(path, at)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_plain(path: StrPath, at: int | None = None) -> int:
    """Opens a file that a job may have made; raises OSError if it is no plain one: a link leads
    to what is not the job's, a pipe would be waited for.

    Where jobs are of other users, a file of this worker's with a second name is none, either:
    the name may be the job's, for what it cannot read itself.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, dir_fd=at)
    try:
        facts = os.fstat(descriptor)
        is_borrowed = facts.st_nlink > 1 and facts.st_uid == os.geteuid()
        if not stat.S_ISREG(facts.st_mode) or (is_borrowed and _files_for["others"]):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def prepare_run_folders(assignment: Assignment, *, only_logs: bool = False) -> bool:
    """Makes the folders in which a job of a run works, because in the job each of them would
    cost a process; returns False for a job that belongs to no run.

    With ``only_logs`` they are left to the job, which is of another user.
    """
    if (run := assignment.environment.get(RUN_DIRECTORY)) is None:
        return False
    name = read_job_name(assignment.task.id)
    if not only_logs:
        _make(f"{run}/{name.work_folder}")
        share = f"{run}/{name.share_folder}"
        if not os.access(share, os.F_OK):  # it is, but for the first task of a point
            _make(share)
    link_whole(f"{run}/log/job/{name.point}/{name.node}/{LATEST}", f"{name.submit:02d}")
    return True


def tidy_run_folders(assignment: Assignment) -> None:
    """Removes the folder in which a job of a run has worked, unless there are files in it."""
    if (run := assignment.environment.get(RUN_DIRECTORY)) is not None:
        with suppress(OSError):
            os.rmdir(f"{run}/{read_job_name(assignment.task.id).work_folder}")


def script_name(assignment: Assignment) -> str:
    """Returns the path of the job's script, as bash is given it.

    It is the whole path if the job belongs to a run, as such a job changes its directory and
    finds its files by ``$0``.
    """
    is_of_run = RUN_DIRECTORY in assignment.environment
    return f"{assignment.folder}/{SCRIPT_NAME}" if is_of_run else "./job"


def _make(folder: str) -> bool:
    """Makes a folder that only this user may enter, and those above it; says whether it is
    new."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        return False
    except FileNotFoundError:
        _make(folder.rpartition("/")[0])
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:  # another worker of this machine was quicker
            return False
    return True


def _link_files(parent: str, attempt: str) -> None:
    """Links the files of an attempt where those of the first would be, which never began: it
    was given back. Scripts of users look for them there."""
    for file in _LINKED:
        with suppress(FileExistsError):
            os.symlink(f"{attempt}/{file}", f"{parent}/{file}")


def _unlink_files(folder: str) -> None:
    """Removes such links: the first attempt begins after all, late, and would write through
    them into the files of another."""
    for path in (f"{folder}/{file}" for file in _LINKED):
        if os.path.islink(path):
            os.unlink(path)
