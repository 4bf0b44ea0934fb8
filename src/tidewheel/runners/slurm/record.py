"""``job.slurm``: what a worker and a job on a compute node agree on, in the attempt's folder.

    key=…    made anew for each submission, and part of the name that Slurm knows the job by
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
from dataclasses import dataclass
from pathlib import Path

from tidewheel.runners.job_directory import write_whole

RECORD_NAME = "job.slurm"
RECORD_BYTES_MAX = 4096
VOID = "void"
OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmRecord:
    """What was written; without an id: nobody has heard sbatch answer."""

    key: str
    id: str | None = None
    is_void: bool = False
    is_over: bool = False


def write_key(directory: Path, key: str) -> None:
    """Before sbatch is called."""
    write_whole(directory / RECORD_NAME, f"key={key}\n".encode(), mode=0o600)


def write_id(directory: Path, record: SlurmRecord, job_id: str) -> None:
    """Slurm has the job. Whole: a job that begins meanwhile reads the one or the other."""
    text = f"key={record.key}\nid={job_id}\n"
    write_whole(directory / RECORD_NAME, text.encode(), mode=0o600)


def make_void(directory: Path, record: SlurmRecord) -> None:
    """No job with this key may begin any more."""
    _mark(directory, record, VOID)


def make_over(directory: Path, record: SlurmRecord) -> None:
    """Whoever begins a later attempt need not look for this one."""
    _mark(directory, record, OVER)


def _mark(directory: Path, record: SlurmRecord, word: str) -> None:
    known = "" if record.id is None else f"id={record.id}\n"
    text = f"key={record.key}\n{known}{word}\n"
    write_whole(directory / RECORD_NAME, text.encode(), mode=0o600)


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
                is_void=VOID in facts,
                is_over=OVER in facts,
            )
    return None
