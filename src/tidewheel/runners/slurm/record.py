"""``job.slurm``: what a worker and a job on a compute node agree on, in the attempt's folder.

    key=…    made anew for each submission, and part of the name that Slurm knows the job by
    store=…  task=…  attempt=…   whose it is, for who finds the job in Slurm
    id=…     Slurm's number of it, once sbatch has answered
    void     this submission is given up: a job that begins all the same ends at once
    over     its end was seen: nothing of it is left in Slurm

The key is there before sbatch is called. Whoever finds a key without a number looks for a job
of that name; if there is none he makes the record void before he lets anybody else have the
task. So a submission whose answer was lost, or is still on its way, runs once or not at all.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tidewheel.runners.job_directory import write_whole

RECORD_NAME = "job.slurm"
RECORD_BYTES_MAX = 4096
ID_LENGTH_MAX = 500
VOID = "void"
OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmRecord:
    """What was written; without an id: nobody has heard sbatch answer."""

    key: str
    id: str | None = None
    store: str = ""
    task_id: str = ""
    attempt: int = 0
    is_void: bool = False
    is_over: bool = False


def known_id(task_id: str) -> str:
    """The id of a task if a line holds it unchanged, else nothing: nobody may take one task for
    another, and end its job."""
    return task_id if task_id.isprintable() and len(task_id) <= ID_LENGTH_MAX else ""


def write_key(directory: Path, record: SlurmRecord) -> None:
    """Before sbatch is called."""
    _write(directory, record)


def write_id(directory: Path, record: SlurmRecord, job_id: str) -> None:
    """Slurm has the job. Whole: a job that begins meanwhile reads the one or the other."""
    _write(directory, replace(record, id=job_id))


def make_void(directory: Path, record: SlurmRecord) -> None:
    """No job with this key may begin any more."""
    _write(directory, record, VOID)


def make_over(directory: Path, record: SlurmRecord) -> None:
    """Whoever begins a later attempt need not look for this one."""
    _write(directory, record, OVER)


def _write(directory: Path, record: SlurmRecord, word: str = "") -> None:
    lines = [
        f"key={record.key}",
        *(("id=" + record.id,) if record.id is not None else ()),
        *(f"store={record.store}", f"task={record.task_id}", f"attempt={record.attempt}"),
        *((word,) if word else ()),
    ]
    text = "".join(f"{line}\n" for line in lines)
    write_whole(directory / RECORD_NAME, text.encode(errors="replace"), mode=0o600)


def read_record(directory: Path) -> SlurmRecord | None:
    """None where nothing was submitted."""
    with suppress(OSError):
        with open(
            os.open(directory / RECORD_NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb"
        ) as file:
            lines = file.read(RECORD_BYTES_MAX).decode(errors="replace").split("\n")
        facts = dict(line.partition("=")[::2] for line in lines if line)
        if facts.get("key"):
            return SlurmRecord(
                key=facts["key"],
                id=facts.get("id") or None,
                store=facts.get("store", ""),
                task_id=facts.get("task", ""),
                attempt=int(facts["attempt"]) if facts.get("attempt", "").isdecimal() else 0,
                is_void=VOID in facts,
                is_over=OVER in facts,
            )
    return None
