"""Writes and reads the files of one attempt: what a job is given, and what it leaves.

``job``           the command as it was submitted, run by bash
``spec.json``     the task's spec, if it has one
``job.out/.err``  what the job printed
``outputs.json``  the JSON object that it wrote to ``$TIDEWHEEL_OUTPUTS`` for those after it
``job.status``    ``pid=… start=… boot=…`` when it begins, ``exit=…`` when it ended; the time
                  of the end is the file's own. An adopter of the job reads its end here,
                  as only a parent is told the exit status by the kernel
``job.messages``  what the job said, see ``messages.client``
``job.socket``    a link to where its worker listens now
Nothing is synced to disk: after a power loss there is no job to adopt, and everything here
that matters is in the store.

``outputs.json`` goes to the store with the end of an attempt that succeeded, whichever runner
ran the job. A job that writes what cannot be handed on has failed in that. The file is read
without following links: a job may have put there what it likes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tidewheel.core.operator.definition import LATEST, RUN_DIRECTORY, read_job_name
from tidewheel.core.queue.requests import End, Ending
from tidewheel.core.queue.task import TaskError
from tidewheel.core.queue.values import VALUES_BYTES_MAX, values_text
from tidewheel.errors import BadValues
from tidewheel.ports.runners import Assignment
from tidewheel.runners.processes import ProcessId
from tidewheel.runners.sanitize import printable, storable

OUTPUTS = "TIDEWHEEL_OUTPUTS"
OUTPUTS_NAME = "outputs.json"
FILE_BYTES_MAX = 2 * VALUES_BYTES_MAX  # white space around them does not count


def with_values(end: End, find: Callable[[], str | None]) -> End:
    """Adds the values that are found to a successful end; bad values make it a failure."""
    if end.ending is not Ending.SUCCEEDED:
        return end
    try:
        return replace(end, values=find())
    except BadValues as error:
        failed = TaskError(code=error.code, description=f"{error} (${OUTPUTS})")
        return replace(end, ending=Ending.FAILED, error=failed)


def read_values(path: Path) -> str | None:
    """Returns the values that a job wrote; None if there are none.

    Raises BadValues for a file that cannot be handed on.
    """
    try:
        content, size = _read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadValues(f"{path.name} cannot be read: {error.strerror}") from None
    if len(content) > FILE_BYTES_MAX:
        seen = f"{path.name} has {size} bytes"
        raise BadValues(f"{seen}; at most {VALUES_BYTES_MAX} are accepted")
    if not content.strip():  # made, and never written to
        return None
    try:
        return values_text(content.decode())
    except UnicodeDecodeError as error:
        raise BadValues(f"{path.name} is not UTF-8 ({error.reason})") from None


def _read(path: Path) -> tuple[bytes, int]:
    """Returns the beginning of a file and its size; raises BadValues if it is no plain file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise BadValues(f"{path.name} is no plain file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(FILE_BYTES_MAX + 1), facts.st_size
    finally:
        os.close(descriptor)


STATUS_NAME = "job.status"
TAIL_BYTES_MAX = 4096
LAST_LINE_LENGTH_MAX = 300


# For a wrapper in sh, which has the status of its job in `code`: how a job of a run ended, in
# the words of Cylc's jobs, unless the job has said so itself; then no process is started here.
WRITE_EXIT = """\
begun= said=
[ ! -r job.status ] || while read -r line; do
  case $line in
    CYLC_JOB_INIT_TIME=*) begun=1 ;;
    CYLC_JOB_EXIT=*) said=1 ;;
  esac
done < job.status
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
    """Is the path of a file in a directory."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, directory: JobDirectory, _of: object = None) -> Path:
        return directory.path / self._name


@dataclass(frozen=True, slots=True)
class JobDirectory:
    """Knows where the files of an attempt are."""

    path: Path
    script = _File("job")  # the command, which bash runs
    spec = _File("spec.json")  # of the task
    out, err = _File("job.out"), _File("job.err")  # what the job prints
    outputs = _File(OUTPUTS_NAME)  # the values that the job hands to the tasks after it
    status = _File(STATUS_NAME)  # which process the job is, and how it ended

    def write_job(self, command: str, spec: str | None) -> None:
        """Makes the directory and puts the command and the spec into it."""
        make_private_directory(self.path)
        if spec is not None:
            write_whole(self.spec, spec.encode(), mode=0o600)
        write_whole(self.script, command.encode() + b"\n", mode=0o700)

    def read_status(self) -> JobStatus:
        """Reads ``job.status``; a line that is not complete counts for nothing."""
        try:
            text = self.status.read_text(encoding="ascii", errors="replace")
        except OSError:
            return JobStatus()
        return parse_status(text)


def parse_status(text: str) -> JobStatus:
    """Reads the complete lines of ``job.status``."""
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


def make_private_directory(path: Path) -> None:
    """Makes a directory, and those above it, that only this user may enter."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        os.chmod(path, 0o700)
    except FileNotFoundError:
        make_private_directory(path.parent)
        with suppress(FileExistsError):  # by another worker of this machine
            os.mkdir(path, 0o700)


def write_whole(path: Path, content: bytes, *, mode: int) -> None:
    """Writes a file so that nobody ever sees half of it, whoever writes it at the same time."""
    written = _beside(path)
    descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.rename(written, path)
    except OSError:
        with suppress(OSError):
            os.unlink(written)
        raise


def link_whole(path: Path, target: Path) -> None:
    """Makes a symbolic link, in place of one that may be there."""
    try:
        os.symlink(target, path)
    except FileExistsError:
        written = _beside(path)
        os.symlink(target, written)
        os.rename(written, path)


def _beside(path: Path) -> str:
    """Returns a name that nobody else uses: workers of one home write the same files."""
    return f"{path}.{os.urandom(4).hex()}.new"


def last_line(path: Path) -> str:
    """Returns the last line with anything on it, safe to show; empty if there is none."""
    written = [line.strip() for line in tail(path).splitlines() if line.strip()]
    return printable(storable(written[-1], LAST_LINE_LENGTH_MAX)) if written else ""


def tail(path: Path) -> str:
    """Returns the end of a file, as it is; empty if the file cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES_MAX))
            return file.read(TAIL_BYTES_MAX).decode(errors="replace")
    except OSError:
        return ""


def prepare_run_folders(assignment: Assignment) -> bool:
    """Makes the folders in which a job of a run works, because in the job each of them would
    cost a process; returns False for a job that belongs to no run."""
    if (run := assignment.environment.get(RUN_DIRECTORY)) is None:
        return False
    name = read_job_name(assignment.task.id)
    _make(Path(run, name.work_folder))
    _make(Path(run, name.share_folder))
    latest = Path(run, "log", "job", name.point, name.node, LATEST)
    link_whole(latest, Path(f"{name.submit:02d}"))
    return True


def tidy_run_folders(assignment: Assignment) -> None:
    """Removes the work folder of a job of a run if it is empty; one with files in it stays."""
    if (run := assignment.environment.get(RUN_DIRECTORY)) is not None:
        with suppress(OSError):
            os.rmdir(Path(run, read_job_name(assignment.task.id).work_folder))


def script_name(assignment: Assignment) -> str:
    """Returns the path by which bash runs the job: the whole path if the job belongs to a run,
    as it changes its directory and finds its files by ``$0``."""
    is_of_run = RUN_DIRECTORY in assignment.environment
    return str(assignment.directory / "job") if is_of_run else "./job"


def _make(folder: Path) -> None:
    with suppress(FileExistsError):
        try:
            os.mkdir(folder, 0o700)
        except FileNotFoundError:
            _make(folder.parent)
            os.mkdir(folder, 0o700)
