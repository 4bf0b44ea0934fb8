"""Does ``tidewheel message``, with which a job reports; quickly, as it may be called often.

Inside a job a message goes to the worker, or if that cannot be reached to the server. Outside,
somebody speaks for a job that cannot.
"""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from tidewheel.cli.session import Session, Words, option, session_command

if TYPE_CHECKING:
    from tidewheel.cli.runs.access import Target
    from tidewheel.core.operator.verbs import Message

JOB_DIRECTORY, JOB_SECRET = "TIDEWHEEL_JOB_DIR", "TIDEWHEEL_SECRET"
JOB_RUN, JOB_NAME = "TIDEWHEEL_WORKFLOW_ID", "TIDEWHEEL_TASK_JOB"
JOB_OUTPUTS, TASK_NAME = "TIDEWHEEL_TASK_OUTPUTS", "TIDEWHEEL_TASK_NAME"
STARTED = "started"  # said by a job's own library
WORDS_FOR_ANOTHER = 3  # RUN ID TEXT


@session_command(
    "message",
    'message "half way" --progress 0.5',
    "message --output restart-file-written",
    "message --output plotted --value file=map.png",
    'message forecast 3/model "WARNING: the disk is slow"',
)
@click.argument("words", nargs=-1, metavar="[RUN ID] [TEXT]...")
@option("--output NAME", "The output to announce, for which other tasks may wait.")
@option(
    "--value values NAME=VALUE",
    "A value for the tasks that wait for the output; JSON, or a string; repeatable.",
    multiple=True,
)
@option("--progress", "How far the job is, from 0 to 1.", type=click.FloatRange(0, 1))
def command(
    session: Session,
    words: Words,
    output: str | None,
    values: Words,
    progress: float | None,
) -> int:
    """Inside a job: report TEXT, an output that other tasks wait for, or progress.

    Outside a job: send a message on behalf of a task: message RUN ID TEXT.
    """
    if not words and output is None and progress is None and not values:
        raise click.UsageError(
            "nothing to send; give TEXT, --output NAME, --value NAME=VALUE or --progress 0.5"
        )
    directory, secret = os.environ.get(JOB_DIRECTORY, ""), os.environ.get(JOB_SECRET, "")
    is_job = ((directory and secret) or _has_voice()) and not session.store
    texts = _own_words(words) if is_job else None
    if texts is None:
        return _speak_for_another(session, words, output, progress, values)
    if output is not None:
        _check_output(output)
    delivery = ""
    for text in texts or ("",):
        said = {"text": text, "output": output, "progress": progress}
        if values:
            said["values"] = _object(values)
        delivery = _send(directory, secret, said)
    if session.as_json:
        click.echo(f'{{"delivery": "{delivery}"}}')
    return 0


def _object(values: Words) -> str:
    """Returns values as a JSON object; raises Refused if they cannot be told."""
    import json

    from tidewheel.core.queue.values import read_value, values_text

    return values_text(json.dumps(dict(map(read_value, values)), ensure_ascii=False))


def _check_output(output: str) -> None:
    """Raises Refused for an output that the task does not declare.

    A job that is in no run may announce anything.
    """
    declared = os.environ.get(JOB_OUTPUTS)
    if declared is None or output in (*declared.split(), STARTED):
        return
    from tidewheel.core.graph.outputs import unknown_output_text
    from tidewheel.errors import Refused

    task = os.environ.get(TASK_NAME, "this task")
    raise Refused(unknown_output_text(task, output, declared.split()))


def _own_words(words: Words) -> tuple[str, ...] | None:
    """Returns the texts that a job reports of itself; None if it speaks for another job of
    its run."""
    if len(words) <= 1:
        return words
    own = os.environ.get(JOB_RUN, ""), os.environ.get(JOB_NAME, "")
    if words[:2] == own:
        return words[2:]
    if words[0] == own[0]:
        return None
    raise click.UsageError(
        f"put TEXT in quotes, or give RUN ID TEXT; the second word is {words[1]!r}"
    )


def _send(directory: str, secret: str, said: dict[str, Any]) -> str:
    from pathlib import Path

    from tidewheel.errors import Unavailable
    from tidewheel.runners.messages.client import MESSAGE_LIMIT, Delivery, send_message

    if not directory:
        return _say_to_server(said)
    limit = os.environ.get(MESSAGE_LIMIT, "")
    most = int(limit) if limit.isdecimal() else None
    try:
        sent = send_message(Path(directory), secret, **said, text_bytes_max=most)
    except Unavailable:  # neither a worker nor a folder: this is another machine
        if not _has_voice():
            raise
        return _say_to_server(said)
    return _say_to_server(said) if sent is Delivery.DROPPED and _has_voice() else sent.value


def _has_voice() -> bool:
    return os.environ.get("TIDEWHEEL_TOKEN", "").startswith("twa.")


def _say_to_server(said: dict[str, Any]) -> str:
    from tidewheel.errors import Unavailable
    from tidewheel.runners.messages.client import Delivery
    from tidewheel.runners.messages.http import own_voice

    voice = own_voice(os.environ)
    if voice is None:
        raise Unavailable(
            "this job has a token, but no server is named; set TIDEWHEEL_SERVER, too"
        )
    voice.say(**said)
    return Delivery.ACCEPTED.value


def _speak_for_another(
    session: Session, words: Words, output: str | None, progress: float | None, values: Words
) -> int:
    from tidewheel.cli.commands.verbs import say_given
    from tidewheel.cli.runs.access import give
    from tidewheel.errors import Refused

    if len(words) < WORDS_FOR_ANOTHER and not (len(words) > 1 and output):
        raise Refused(
            "you are not inside a job, so the task must be named; use "
            "tidewheel message RUN POINT/NAME TEXT"
        )
    if progress is not None:
        raise click.UsageError("--progress works only inside a job; leave it out")

    def asked(target: Target) -> Message:
        from tidewheel.core.operator.verbs import Message

        if not target.rest:
            raise click.UsageError(
                f"name the task: tidewheel message {quote(target.run)} POINT/NAME TEXT"
            )
        texts = target.rest[1:]
        return Message(id=target.rest[0], texts=texts, output=output or "", values=values)

    return say_given(session, give(session, words, asked))
