"""Turns what jobs report, in the words of the queue, into events of the core (SEMANTICS §6)."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from tidewheel.core.graph.definition import NodeDef, Retries
from tidewheel.core.graph.findings import nearly_said
from tidewheel.core.graph.outputs import STANDARD, STARTED, SUBMITTED, unknown_output_text
from tidewheel.core.operator.requests import JobOver, JobSaid, JobStarted
from tidewheel.core.operator.run_log import ERROR, WARNING, RunLogLine
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.events import JobEnd, JobEnded, JobSubmitted, Notice, OutputMade
from tidewheel.core.sched.task_state import Key
from tidewheel.worker.jobs import START_FAILED

if TYPE_CHECKING:
    from tidewheel.scheduler.run_engine import RunEngine

SEVERITIES = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", "CUSTOM", "NORMAL")
SEVERITY_DEFAULT = "INFO"
MISTAKEN = "mistaken"  # the notice that a job probably meant an output with what it said


def severity_of(text: str) -> tuple[str, str]:
    """Returns the severity and the rest: `WARNING:disk is full` is a warning.

    A text without such a word is information.
    """
    word, colon, rest = text.partition(":")
    if colon and word.strip().upper() in SEVERITIES:
        return word.strip().upper(), rest.strip()
    return SEVERITY_DEFAULT, text


def job_started(engine: RunEngine, one: JobStarted) -> None:
    """Takes the start of a job's process; with an init-script the job says when it started."""
    found = engine.jobs.get(one.task_id)
    if found is None:
        return
    key, submit = found
    if engine.settings.node(key).scripts.init:
        engine.step(JobSubmitted(key, submit, one.at))
    else:
        engine.step(OutputMade(key, submit, STARTED, one.at))


def job_said(engine: RunEngine, one: JobSaid) -> None:
    """Takes a message that a job sent through its worker."""
    found = engine.jobs.get(one.task_id)
    if found is not None:
        job_message(engine, found, one.text, one.output, one.at)


def job_message(
    engine: RunEngine,
    job: tuple[Key, int],
    text: str,
    output: str | None,
    at: Instant,
    how: str = "received",
) -> None:
    """Takes a message of a job: an output if it is one, and news for people in any case."""
    key, submit = job
    severity, said = severity_of(text)
    node = engine.settings.node(key)
    log = engine.batch.log
    name = output or next((name for name, words in node.outputs if words == said), None)
    if name == SUBMITTED:  # by a runner that does not start jobs at once
        log.append(engine.task_events.said(key, said, severity, how))
        engine.step(JobSubmitted(key, submit, at))
        return
    known = name == STARTED or any(name == one for one, _ in node.outputs)
    if name != STARTED:
        log.append(engine.task_events.said(key, said or str(name), severity, how))
    if name is not None and known:
        engine.step(OutputMade(key, submit, name, at))
    elif wrong := _mistaken(node, name, said):
        text = f"{engine.text(key)} {wrong}"
        log.append(RunLogLine(WARNING, text))
        engine.batch.notices.append(Notice(MISTAKEN, key, text))
    engine.batch.notices.append(Notice(f"message/{severity}", key, said or str(name)))


def job_over(engine: RunEngine, one: JobOver) -> None:
    """Takes the end of a job: its task is final in the store."""
    found = engine.jobs.pop(one.task_id, None)
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
    if how is not JobEnd.SUCCEEDED and one.error:
        tell_failure(engine, key, submit, one.error)
    ended = JobEnded(key, submit, how, one.at, _retries(engine, key, how))
    engine.step(ended, _signal_name(one.exit_status))


def tell_failure(engine: RunEngine, key: Key, submit: int, why: str) -> None:
    """Says why a job failed, in the log and to those who are told of the failure."""
    engine.batch.log.append(RunLogLine(ERROR, f"[{engine.text(key)}/{submit:02d}] {why}"))
    engine.batch.notices.append(Notice("job failed", key, why))


def _retries(engine: RunEngine, key: Key, how: JobEnd) -> Retries | None:
    """Returns the retries of a task whose job did not succeed, with what was broadcast."""
    if how is JobEnd.SUCCEEDED or key[1] not in engine.graph.nodes:
        return None
    return engine.settings.node(key).retries


def _mistaken(node: NodeDef, name: str | None, said: str) -> str:
    """Returns a warning if a job's message was probably meant to make an output; else empty."""
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


def _signal_name(exit_status: int | None) -> str:
    """Returns the signal that ended a job which failed, or ERR for any other failure."""
    if exit_status is None or exit_status >= 0:
        return "ERR"
    try:
        return signal.Signals(-exit_status).name.removeprefix("SIG")
    except ValueError:
        return "ERR"
