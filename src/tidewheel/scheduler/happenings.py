"""What jobs report, from the words of the queue to events of the core (SEMANTICS §6)."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable

from tidewheel.core.graph.node import NodeDef, Retries
from tidewheel.core.graph.outputs import STANDARD, STARTED, SUBMITTED, unknown_output_text
from tidewheel.core.graph.suggestions import nearly_said
from tidewheel.core.operator.requests import JobOver, JobSaid, JobStarted
from tidewheel.core.operator.run_log import ERROR, WARNING, RunLogLine
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.effects import Notice
from tidewheel.core.sched.events import JobEnd, JobEnded, JobSubmitted, OutputMade
from tidewheel.core.sched.task_state import Key
from tidewheel.scheduler.run_engine import Drive
from tidewheel.worker.jobs import START_FAILED

SEVERITIES = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", "CUSTOM", "NORMAL")
SEVERITY_DEFAULT = "INFO"
MISTAKEN = "mistaken"  # the notice that a job probably meant an output with what it said

NodeOf = Callable[[Key], NodeDef]
LineOf = Callable[[Key, str, str, str], RunLogLine]  # a word of a job, as the run log has it


def severity_of(text: str) -> tuple[str, str]:
    """`WARNING:disk is full` is a warning; a text without such a word is information."""
    word, colon, rest = text.partition(":")
    if colon and word.strip().upper() in SEVERITIES:
        return word.strip().upper(), rest.strip()
    return SEVERITY_DEFAULT, text


class JobReports:
    """Tells the core what jobs report; `node_of` is a node with what was broadcast to it."""

    def __init__(self, node_of: NodeOf, line_of: LineOf) -> None:
        self._node_of = node_of
        self._line_of = line_of

    def started(self, drive: Drive, one: JobStarted) -> None:
        """Its process exists. With an init-script the job says itself when it has started."""
        found = drive.jobs.get(one.task_id)
        if found is None:
            return
        key, submit = found
        if self._node_of(key).scripts.init:
            drive.step(JobSubmitted(key, submit, one.at))
        else:
            drive.step(OutputMade(key, submit, STARTED, one.at))

    def said(self, drive: Drive, one: JobSaid) -> None:
        found = drive.jobs.get(one.task_id)
        if found is not None:
            self.message(drive, found, one.text, one.output, one.at)

    def message(
        self,
        drive: Drive,
        job: tuple[Key, int],
        text: str,
        output: str | None,
        at: Instant,
        how: str = "received",
    ) -> None:
        """A word of a job: an output if it is one, and news for people in any case."""
        key, submit = job
        severity, said = severity_of(text)
        node = self._node_of(key)
        name = output or next((name for name, words in node.outputs if words == said), None)
        if name == SUBMITTED:  # by a runner that does not start jobs at once
            drive.work.log.append(self._line_of(key, said, severity, how))
            drive.step(JobSubmitted(key, submit, at))
            return
        known = name == STARTED or any(name == one for one, _ in node.outputs)
        if name != STARTED:
            drive.work.log.append(self._line_of(key, said or str(name), severity, how))
        if name is not None and known:
            drive.step(OutputMade(key, submit, name, at))
        elif wrong := _mistaken(node, name, said):
            text = f"{drive.text(key)} {wrong}"
            drive.work.log.append(RunLogLine(WARNING, text))
            drive.work.notices.append(Notice(MISTAKEN, key, text))
        drive.work.notices.append(Notice(f"message/{severity}", key, said or str(name)))

    def over(self, drive: Drive, one: JobOver) -> None:
        """Its task is final in the store."""
        found = drive.jobs.pop(one.task_id, None)
        if found is None:
            return
        key, submit = found
        if one.status == Status.SUCCEEDED:
            how = JobEnd.SUCCEEDED
        elif one.status == Status.CANCELLED:
            how = JobEnd.KILLED
        elif one.error_code == START_FAILED:
            how = JobEnd.NOT_STARTED
        else:
            how = JobEnd.FAILED
        drive.failure = _signal_name(one.exit_status)
        if how is not JobEnd.SUCCEEDED and one.error:
            tell_failure(drive, key, submit, one.error)
        drive.step(JobEnded(key, submit, how, one.at, self._retries(drive, key, how)))

    def _retries(self, drive: Drive, key: Key, how: JobEnd) -> Retries | None:
        """What was broadcast counts also for what follows from a failure."""
        if how is JobEnd.SUCCEEDED or key[1] not in drive.graph.nodes:
            return None
        return self._node_of(key).retries

    def polled(
        self, drive: Drive, job: tuple[Key, int], texts: Iterable[str], at: Instant
    ) -> None:
        """What a job has written down instead of saying it."""
        for text in texts:
            self.message(drive, job, text, None, at, how="polled")


def _mistaken(node: NodeDef, name: str | None, said: str) -> str:
    """How a job's word that is no output was probably meant to be one."""
    if name is not None:
        if name in STANDARD:
            return ""
        declared = (own for own, _ in node.outputs)
        return f"announced no output: {unknown_output_text(node.name, name, declared)}"
    meant = {text: own for own, message in node.outputs for text in (own, message)}
    near = nearly_said(said, meant) if meant else None
    if near is None:
        return ""
    own = meant[near]
    message = dict(node.outputs)[own]
    return (
        f"said {said!r}, which is not quite {message!r}: its output {own} is not made by that"
    )


def tell_failure(drive: Drive, key: Key, submit: int, why: str) -> None:
    """Why a job failed, for the log and for whoever is told of it."""
    drive.work.log.append(RunLogLine(ERROR, f"[{drive.text(key)}/{submit:02d}] {why}"))
    drive.work.notices.append(Notice("job failed", key, why))


def _signal_name(exit_status: int | None) -> str:
    """With what a job ended that failed: a signal, or ERR for any other failure."""
    if exit_status is None or exit_status >= 0:
        return "ERR"
    try:
        return signal.Signals(-exit_status).name.removeprefix("SIG")
    except ValueError:
        return "ERR"
