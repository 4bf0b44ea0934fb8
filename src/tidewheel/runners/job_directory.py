"""The files of one attempt: what is written for a job, and what a job leaves.

``job``           the command as it was submitted, run by bash
``spec.json``     the task's spec, if it has one
``job.out/.err``  what the job printed
``outputs.json``  what it hands to those after it, see ``job_values``
``job.status``    ``pid=… start=… boot=…`` when it begins, ``exit=…`` when it ended; the time
                  of the end is the file's own. Whoever adopts the job reads its end here,
                  as only a parent is told the exit status by the kernel
``job.messages``  what the job said, see ``spool``
``job.socket``    a link to where its worker listens now
Nothing is synced to disk: after a power loss there is no job to adopt, and everything here
that matters is in the store.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tidewheel.runners.job_values import OUTPUTS_NAME
from tidewheel.runners.processes import ProcessId
from tidewheel.runners.texts import printable, storable

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
    """What ``job.status`` says; None: not, or not completely, written."""

    process: ProcessId | None = None
    boot_id: str = ""
    exit_status: int | None = None
    was_signalled: bool = False  # before it ended; only jobs of other engines say so


@dataclass(frozen=True, slots=True)
class JobDirectory:
    """Where the files of an attempt are."""

    path: Path

    @property
    def script(self) -> Path:
        """The command, run by bash."""
        return self.path / "job"

    @property
    def spec(self) -> Path:
        """The task's spec."""
        return self.path / "spec.json"

    @property
    def out(self) -> Path:
        """What the job wrote to standard output."""
        return self.path / "job.out"

    @property
    def err(self) -> Path:
        """What the job wrote to standard error."""
        return self.path / "job.err"

    @property
    def outputs(self) -> Path:
        """What it hands to those after it."""
        return self.path / OUTPUTS_NAME

    @property
    def status(self) -> Path:
        """Which process the job is, and how it ended."""
        return self.path / STATUS_NAME

    def write_job(self, command: str, spec: str | None) -> None:
        """Make the directory and put the command and the spec into it."""
        make_private_directory(self.path)
        if spec is not None:
            write_whole(self.spec, spec.encode(), mode=0o600)
        write_whole(self.script, command.encode() + b"\n", mode=0o700)

    def read_status(self) -> JobStatus:
        """What is known of the job; a line that is not complete counts for nothing."""
        try:
            text = self.status.read_text(encoding="ascii", errors="replace")
        except OSError:
            return JobStatus()
        return parse_status(text)


def parse_status(text: str) -> JobStatus:
    """Read the lines of ``job.status``."""
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
    """Make a directory, and those above it, that only this user may enter."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        os.chmod(path, 0o700)
    except FileNotFoundError:
        make_private_directory(path.parent)
        with suppress(FileExistsError):  # by another worker of this machine
            os.mkdir(path, 0o700)


def write_whole(path: Path, content: bytes, *, mode: int) -> None:
    """Write a file so that nobody ever sees half of it."""
    written = f"{path}.new"
    descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.rename(written, path)
    except OSError:
        with suppress(OSError):
            os.unlink(written)
        raise


def link_whole(path: Path, target: Path) -> None:
    """Make a symbolic link, in place of one that may be there."""
    try:
        os.symlink(target, path)
    except FileExistsError:
        written = f"{path}.new"
        with suppress(FileNotFoundError):
            os.unlink(written)
        os.symlink(target, written)
        os.rename(written, path)


def last_line(path: Path) -> str:
    """The last line with anything on it, safe to show; empty if there is none."""
    written = [line.strip() for line in tail(path).splitlines() if line.strip()]
    return printable(storable(written[-1], LAST_LINE_LENGTH_MAX)) if written else ""


def tail(path: Path) -> str:
    """The end of a file, as it is; empty if there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES_MAX))
            return file.read(TAIL_BYTES_MAX).decode(errors="replace")
    except OSError:
        return ""
