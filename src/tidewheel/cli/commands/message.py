"""``tidewheel message``: how a job speaks to its worker; quick, as it may be called often."""

from __future__ import annotations

import os

import click

JOB_DIRECTORY, JOB_SECRET = "TIDEWHEEL_JOB_DIR", "TIDEWHEEL_SECRET"


@click.command("message")
@click.argument("text", default="")
@click.option("--output", metavar="NAME", help="An output, for which other tasks may wait.")
@click.option("--progress", type=click.FloatRange(0, 1), help="How far it is: 0 to 1.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def command(text: str, output: str | None, progress: float | None, *, as_json: bool) -> int:
    """Inside a job: report TEXT, an output that others wait for, or progress."""
    if not text and output is None and progress is None:
        raise click.UsageError("say something: TEXT, --output NAME or --progress 0.5")
    delivery = _send(text, output, progress)
    if as_json:
        click.echo(f'{{"delivery": "{delivery}"}}')
    return 0


def _send(text: str, output: str | None, progress: float | None) -> str:
    from pathlib import Path

    from tidewheel.errors import Refused
    from tidewheel.runners.message_client import MESSAGE_LIMIT, send_message

    directory, secret = os.environ.get(JOB_DIRECTORY), os.environ.get(JOB_SECRET)
    if not directory or not secret:
        raise Refused(
            "this command speaks for a job, and nobody here is one; "
            "call it inside a command that a worker runs"
        )
    limit = os.environ.get(MESSAGE_LIMIT, "")
    sent = send_message(
        Path(directory),
        secret,
        text=text,
        output=output,
        progress=progress,
        text_bytes_max=int(limit) if limit.isdecimal() else None,
    )
    return sent.value
