"""Prints errors for people: what happened, and what to do; and chooses the exit status."""

from __future__ import annotations

import errno
import resource

import click

from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.output import json_line, safe
from tidewheel.core.graph.findings import InvalidDefinition
from tidewheel.errors import (
    InvalidTask,
    LeaseLost,
    NotFound,
    Refused,
    TidewheelError,
    WrongStatus,
)

LOOK_FOR = {
    "task": "List all tasks: tidewheel tasks",
    "run": "List all runs: tidewheel runs",
    "worker": "List all workers: tidewheel workers --all",
}


def tell(error: Exception, help_text: str, *, as_json: bool) -> int:
    """Prints what went wrong and what to do, and returns the exit status; raises a bug
    again. `help_text` is for an error that does not say what to do."""
    if isinstance(error, InvalidDefinition):
        from tidewheel.cli.pages.workflows import tell_refusal

        return tell_refusal(error, as_json=as_json)
    if isinstance(error, TidewheelError):
        what, advice = what_and_advice(error)
        _show(error.code, what, advice or help_text, as_json=as_json)
        return ExitCode.REFUSED if isinstance(error, Refused) else ExitCode.UNAVAILABLE
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        what = f"this process may have {limit} files open (ulimit -n), and all of them are"
        advice = f"Raise the limit and try again: ulimit -n {4 * limit}"
        _show("file", what, advice, as_json=as_json)
        return ExitCode.UNAVAILABLE
    if isinstance(error, OSError) and error.errno == errno.ENFILE:
        what = "this machine has as many files open as it may (sysctl fs.file-max)"
        _show("file", what, "End other programs, or raise this limit", as_json=as_json)
        return ExitCode.UNAVAILABLE
    if isinstance(error, OSError) and error.filename is not None:
        what = f"{error.filename}: {error.strerror}"
        _show("file", what, "Check the path and its permissions", as_json=as_json)
        return ExitCode.REFUSED
    raise error


def tell_usage(error: click.ClickException, help_text: str, *, as_json: bool) -> int:
    """Prints what is wrong with the words on the command line, and returns the exit status."""
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    advice = f"See: {ctx.command_path} --help" if ctx is not None else help_text
    what = error.format_message().replace("\n\t", " ")  # click lists choices line by line
    _show("usage", what, advice, as_json=as_json)
    return ExitCode.REFUSED


def what_and_advice(error: TidewheelError) -> tuple[str, str]:
    """Splits an error into two sentences: what happened, and what to do.

    Errors say both in one message, with the advice as its last part; some give no advice.
    """
    text = str(error)
    match error:
        case InvalidTask():
            findings = "; ".join(error.findings)
            return f"the task is not accepted: {findings}", "Correct this and submit again"
        case NotFound(kind=kind) if kind in LOOK_FOR:
            return text, LOOK_FOR[kind]
        case WrongStatus():
            return text, "Look at it: tidewheel task " + safe(error.task_id)
        case LeaseLost():
            what, _, advice = text.rpartition("; ")
            return what, advice
        case _:
            pass
    for separator in (". ", "; "):
        what, found, advice = text.partition(separator)
        if found:
            return what, advice
    is_missing = isinstance(error, NotFound)
    return text, "Check the name, and whether this is the right store" if is_missing else ""


def _show(code: str, what: str, advice: str, *, as_json: bool) -> None:
    if as_json:
        error = {"code": code, "message": what, "advice": advice}
        click.echo(json_line({"error": error}), err=True)
        return
    click.echo(f"tidewheel: {safe(what.rstrip('.'))}", err=True)
    click.echo(f"  {safe(advice[:1].upper() + advice[1:].rstrip('.'))}", err=True)
