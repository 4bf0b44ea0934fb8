"""Does `cylc message`: sends a message of this job, or in the name of another job.

Imports little and late: the import is most of the cost of a message.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence

from tidewheel.cli.cylc.arguments import BadUsage, options, read_arguments

FAILED, USAGE = 1, 2
SEVERITIES = ("CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG", "CUSTOM", "NORMAL")
UNMARKED = ("INFO", "NORMAL")  # how a message is meant that says nothing else
_CLASSIC_WORDS_MAX = 2  # up to two words are messages; with more, workflow and job come first
_OPTIONS = options("-s -p --severity --priority=")


def message(arguments: Sequence[str]) -> int:
    """Sends the messages; returns exit status 0 once the worker has them, or a file keeps
    them for it."""
    from tidewheel.errors import TidewheelError

    try:
        workflow, job, texts = _read(arguments)
        _say(workflow, job, texts)
    except BadUsage as bad:
        print(bad, file=sys.stderr)  # noqa: T201 - click would be most of the cost
        return USAGE
    except TidewheelError as error:
        print(f"cylc message: {error}", file=sys.stderr)  # noqa: T201 - as above
        return FAILED
    return 0


def _read(arguments: Sequence[str]) -> tuple[str, str, list[str]]:
    said = read_arguments("message", _OPTIONS, arguments)
    workflow = job = ""
    texts = said.words
    if len(texts) > _CLASSIC_WORDS_MAX:
        workflow, job, *texts = texts
    texts = list(_from_input(texts))
    if not texts:
        raise BadUsage("cylc message: there is no text to send; write cylc message TEXT…")
    severity = said.last("severity").upper()
    return workflow, job, [marked(text, severity) for text in texts]


def marked(text: str, severity: str) -> str:
    """Returns a message with its severity in front (`WARNING:text`); an ordinary one has
    none."""
    before, colon, rest = text.partition(":")
    if colon and before.strip().upper() in SEVERITIES:
        severity, text = before.strip().upper(), rest
    text = text.strip()
    return text if not severity or severity in UNMARKED else f"{severity}:{text}"


def _from_input(texts: Sequence[str]) -> Iterator[str]:
    """Yields the messages; `-` stands for those on standard input, between empty lines."""
    yield from (text for text in texts if text != "-")
    if "-" in texts:
        yield from (part.strip() for part in sys.stdin.read().split("\n\n") if part.strip())


def _say(workflow: str, job: str, texts: Sequence[str]) -> None:
    own_job = os.environ.get("CYLC_TASK_JOB", "")
    own_run = os.environ.get("CYLC_WORKFLOW_ID", "")
    names = ("", own_run, os.environ.get("CYLC_WORKFLOW_NAME", ""))
    if own_job and workflow in names and job in ("", own_job):
        _speak(texts)
        return
    if not job:
        raise BadUsage(
            "cylc message: this is not inside a job, so name one: "
            "cylc message -- WORKFLOW POINT/NAME/SUBMIT TEXT…"
        )
    from tidewheel.cli.cylc.inspect import give
    from tidewheel.core.operator.verbs import Message

    give(workflow, Message(id=job, texts=tuple(texts)))


def _speak(texts: Iterable[str]) -> None:
    from pathlib import Path

    from tidewheel.errors import Refused
    from tidewheel.runners.messages.client import MESSAGE_LIMIT, send_message

    directory, secret = os.environ.get("TIDEWHEEL_JOB_DIR"), os.environ.get("TIDEWHEEL_SECRET")
    if not directory or not secret:
        raise Refused(
            "TIDEWHEEL_JOB_DIR or TIDEWHEEL_SECRET is not set; leave both in the job's "
            "environment"
        )
    limit = os.environ.get(MESSAGE_LIMIT, "")
    most = int(limit) if limit.isdecimal() else None
    for text in texts:
        send_message(Path(directory), secret, text=text, text_bytes_max=most)
