"""Tells how a Slurm job ended, or why it waits: by Slurm's word and by what the job wrote.

Slurm knows why it ended a job; the wrapper knows how the command ended. Where Slurm had a
reason of its own that counts, else the exit status. A job that never began was never started,
which is another failure for a workflow than one that failed.

Why a job stays in Slurm's queue is told where that does not pass by itself. Slurm's list shows
its reason with every job, so nothing more is asked.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tidewheel.core.queue.requests import End, Ending
from tidewheel.core.queue.steps import TIMED_OUT
from tidewheel.runners.job_directory import JobDirectory, JobStatus, last_line, tail
from tidewheel.runners.outcome import end_of, exit_status_of, failed
from tidewheel.runners.processes import Exit
from tidewheel.runners.sanitize import LAST_LINE
from tidewheel.runners.slurm.programs import SlurmRow, SlurmUsage

TIMES_NAME = "job.times"  # what the shell counted
START = "start"  # the code of everything that ended before it began
WAITS = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED"})
ENDED = frozenset(
    {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL"}
    | {"PREEMPTED", "BOOT_FAIL", "DEADLINE", "REVOKED", "SPECIAL_EXIT"}
)
# State: the code of the error, what happened, what to do. The rest is told by its exit status.
_REASONS = {
    "OUT_OF_MEMORY": (
        "out_of_memory",
        "it used more memory than it had asked for and was killed",
        "ask for more: --mem",
    ),
    "TIMEOUT": (
        TIMED_OUT,
        "it ran longer than its time limit",
        "allow more: --time, or the execution time limit",
    ),
    "NODE_FAIL": ("node_fail", "its node failed", "a retry runs elsewhere"),
    "BOOT_FAIL": ("node_fail", "its node could not be booted", "a retry runs elsewhere"),
    "PREEMPTED": ("preempted", "it was preempted by another job", "a retry runs it again"),
    "DEADLINE": ("deadline", "it could not end before its deadline", "check its --deadline"),
    "CANCELLED": (
        "cancelled",
        "it was cancelled in Slurm, by a user or by Slurm itself",
        "ask who called scancel; tidewheel did not",
    ),
}


def has_begun(row: SlurmRow, status: JobStatus) -> bool:
    """Says whether the job counts as started: it says so, or Slurm ended it on a node."""
    return status.process is not None or (bool(row.nodes) and row.state in _REASONS)


def slurm_end(
    row: SlurmRow, status: JobStatus, files: JobDirectory, *, by_us: bool
) -> End | None:
    """Returns how a job ended that Slurm says is over; None if that is not known yet.

    That is so where Slurm has no reason of its own, and the job has left no exit status.
    """
    if not has_begun(row, status):
        return _never_began(row, files, by_us=by_us)
    recorded = status.exit_status
    reason = _REASONS.get(row.state)
    if _ended_by_itself(row, status, files) or (row.state == "CANCELLED" and by_us):
        reason = None
    if reason is not None:
        code, what, advice = reason
        ending = Ending.ABORTED if code == TIMED_OUT else Ending.FAILED
        exit_status = (
            None if recorded is None else end_of(Exit(status=recorded), files).exit_status
        )
        end = _failure(code, row, what, advice, files)
        return replace(end, ending=ending, exit_status=exit_status)
    return None if recorded is None else end_of(Exit(status=recorded), files)


def _ended_by_itself(row: SlurmRow, status: JobStatus, files: JobDirectory) -> bool:
    """Says whether the job had ended by itself before Slurm gave it up.

    What ends while the controller is down is cancelled, or failed with its node, for Slurm. A
    job that was signalled before it ended has not done its work, whatever its exit status.
    """
    if status.exit_status is None or row.state == "OUT_OF_MEMORY":
        return False
    if row.state == "NODE_FAIL":
        return True
    by_signal = exit_status_of(Exit(status=status.exit_status)) < 0
    # Slurm writes this before it signals a job, whose wrapper may end before it notes that.
    is_told = f"*** JOB {row.id} ON " in tail(files.err)
    return not (status.was_signalled or by_signal or is_told)


def unrecorded_end(row: SlurmRow, code: tuple[int, int] | None, files: JobDirectory) -> End:
    """Returns the end of a job that left no exit status: killed, or its folder unwritable.

    ``code`` is the (exit status, signal) that Slurm remembers, None if it does not.
    """
    if code is not None and code[1]:
        return end_of(Exit(status=-code[1]), files)
    if code is not None and (code[0] or row.state == "COMPLETED"):
        return end_of(Exit(status=code[0]), files)
    what = "it left no exit status: it was killed, or its folder could not be written"
    return _failure("vanished", row, what, "look at job.err", files)


def forgotten_end(job_id: str | None, status: JobStatus, files: JobDirectory) -> End:
    """Returns the end of a job that Slurm does not know any more, by what the job wrote."""
    if status.exit_status is not None:
        return end_of(Exit(status=status.exit_status), files)
    known = f"Slurm job {job_id}" if job_id else "the job"
    description = (
        f"{known} is no longer known to Slurm and left no exit status: it was killed while "
        "no worker watched it (Slurm forgets ended jobs after MinJobAge)"
    )
    code = START if status.process is None else "vanished"
    return failed(code, description)


def with_usage(end: End, files: JobDirectory, usage: SlurmUsage | None) -> End:
    """Returns an end with what the job has used, as far as that is known."""
    metrics: dict[str, float] = {}
    cpu_seconds = read_cpu_seconds(files.path)
    if cpu_seconds is not None:
        metrics["cpu_seconds"] = cpu_seconds
    if usage is not None:
        metrics["memory_bytes_max"] = usage.memory_bytes
    return replace(end, metrics=json.dumps(metrics)) if metrics else end


def read_cpu_seconds(directory: Path) -> float | None:
    """Returns the CPU time of a job and its children, as the shell counted it, or None."""
    try:
        lines = (
            (directory / TIMES_NAME).read_text(encoding="ascii", errors="replace").split("\n")
        )
        return round(sum(map(_seconds, lines[1].split())), 3)
    except (OSError, IndexError, ValueError):
        return None


def _seconds(text: str) -> float:
    minutes, _, seconds = text.rstrip("s").partition("m")
    return int(minutes) * 60 + float(seconds)


def not_submitted(refused: str) -> End:
    """Returns the end of a job that was not submitted, or that Slurm did not take."""
    return failed(START, refused)


def _never_began(row: SlurmRow, files: JobDirectory, *, by_us: bool) -> End:
    what, advice = f"it ended before its command began ({row.state})", "look at job.err"
    if row.state == "CANCELLED" and by_us:
        what, advice = (
            "it was cancelled before it began",
            "tidewheel cancelled it, as requested",
        )
    elif row.state in _REASONS:
        _, what, advice = _REASONS[row.state]
    return _failure(START, row, what, advice, files)


def _failure(code: str, row: SlurmRow, what: str, advice: str, files: JobDirectory) -> End:
    where = f" on {row.nodes}" if row.nodes else ""
    why = "" if row.reason in ("None", "") else f" ({row.reason})"
    last_words = last_line(files.err)
    said = f"{LAST_LINE}{last_words}" if last_words else ""
    text = f"Slurm job {row.id}{where}: {what}{why}; {advice}{said}"
    facts = {"slurm_job": row.id, "state": row.state, "nodes": row.nodes, "reason": row.reason}
    return failed(code, text, facts)


# Reasons that pass by themselves: others end, a time comes, a licence is given back.
_PASSES = frozenset(
    {"", "None", "Priority", "Resources", "BeginTime", "Dependency", "Licenses"}
    | {"Prolog", "Cleaning", "JobArrayTaskLimit"}
)
_ADVICE = {
    "JobHeldUser": "it is held: scontrol release {id} releases it",
    "JobHeldAdmin": "an administrator held it, and has to release it",
    "DependencyNeverSatisfied": "a job that its --dependency names has failed",
    "PartitionTimeLimit": "its partition allows only a shorter --time",
    "PartitionNodeLimit": "its partition has fewer nodes than --nodes asks for",
    "PartitionDown": "its partition takes no jobs at present",
    "PartitionInactive": "its partition takes no jobs at present",
    "BadConstraints": "no node has what it asks for",
    "ReqNodeNotAvail": "nodes that it asks for are down or reserved",
    "Nodes required for job are DOWN": "nodes that it asks for are down or reserved",
}
_MORE = "scontrol show job {id} says more"


def turn_words(row: SlurmRow) -> str:
    """Returns the message that nobody has to act any more: a job only waits for its turn."""
    return f"Slurm job {row.id} waits for its turn"


def is_of_queue(text: str) -> bool:
    """Says whether a message is about a job in Slurm's queue, which has not begun."""
    return text.removeprefix("waiting: ").startswith("Slurm job ")


def waiting_words(row: SlurmRow) -> str:
    """Returns what somebody should know of a job that waits; empty if it waits for its turn."""
    reason = row.reason.strip("()")
    # A limit on all jobs of an account or a user together passes when others end.
    is_limit = reason.startswith(("Assoc", "QOS", "Max")) and reason.endswith("Limit")
    passes = reason in _PASSES or (is_limit and "PerJob" not in reason)
    if row.state not in WAITS or passes:
        return ""
    kind = reason.partition(",")[0]
    advice = _ADVICE.get(kind, _MORE).format(id=row.id)
    return f"waiting: Slurm job {row.id} stays in Slurm's queue ({reason}); {advice}"
