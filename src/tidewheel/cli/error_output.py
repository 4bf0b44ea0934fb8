"""Prints errors for people: what happened, and what to do; and chooses the exit status."""

from __future__ import annotations

import errno

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
    "task of a run": "List tasks of the queue: tidewheel tasks; of a run: tidewheel tree RUN",
    "run": "List all runs: tidewheel runs",
    "worker": "List all workers: tidewheel workers --all",
}
NEAR_MAX = 2
EXTRA = "Got unexpected extra argument"  # of click, which has no class for it
# Where a name without an option is an easy guess: what it may have been meant for.
MEANT_OPTIONS = {"runs": "--workflow", "tasks": "--queue"}


class LikeAnother(NotFound):
    """No such thing in the store, but one whose name is like it."""

    def __init__(self, missing: NotFound, other: str) -> None:
        self.other = other
        super().__init__(missing.kind, missing.name)


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
        import resource

        limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        what = f"this process may have {limit} files open (ulimit -n), and all of them are"
        more = 4 * limit if most == resource.RLIM_INFINITY else min(4 * limit, most)
        advice = f"Raise the limit and try again: ulimit -n {more} (LimitNOFILE= of a service)"
        if more <= limit:
            advice = "Only root can raise it: LimitNOFILE= of a service, or limits.conf"
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
    what = _usage_fault(error)
    _show("usage", what, advice, as_json=as_json)
    return ExitCode.REFUSED


def _line(ctx: click.Context) -> str:
    """Returns a command with the words that it takes."""
    arguments = [one for one in ctx.command.params if isinstance(one, click.Argument)]
    return " ".join([ctx.command_path, *(one.make_metavar(ctx) for one in arguments)])


def _usage_fault(error: click.ClickException) -> str:
    """Returns what is wrong with a command line: what click found, in this program's words."""
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    match error:
        case click.MissingParameter(param=click.Argument() as one) if ctx is not None:
            return f"{one.make_metavar(ctx)} is missing; write: {_line(ctx)}"
        case click.NoSuchOption(option_name=name, possibilities=near):
            meant = f"; did you mean {' or '.join(sorted(near)[:NEAR_MAX])}?" if near else ""
            return f"there is no option {name}{meant}"
        case click.BadOptionUsage(option_name=name):
            needs = "takes no value" if "does not take" in error.message else "needs a value"
            return f"{name} {needs}"
        case click.MissingParameter():
            pass
        case click.BadParameter(param=click.Parameter() as one):
            place = f"{'/'.join(one.opts)}: " if isinstance(one, click.Option) else ""
            return place + _value_fault(one.type, error.message)
        case click.UsageError() if ctx is not None and error.message.startswith(EXTRA):
            word = error.message.removeprefix(EXTRA).strip("s ()")
            named = MEANT_OPTIONS.get(ctx.command.name or "")
            meant = f"; did you mean: {ctx.command_path} {named} {word}?" if named else ""
            return f"{word!r} is one word too many; write: {_line(ctx)}{meant}"
        case _:
            pass
    return error.format_message().replace("\n\t", " ")  # click lists choices line by line


def _value_fault(kind: click.ParamType[object], message: str) -> str:
    """Returns what is wrong with a value: of a number what is accepted, of a word also which
    one may be meant."""
    if isinstance(kind, click.IntRange) and kind.min is not None:
        most = "or more" if kind.max is None else f"to {kind.max}"
        seen = message.partition(" ")[0].strip("'")
        return f"{seen!r} is not accepted; expected {kind.min} {most}"
    if not isinstance(kind, click.Choice):
        return message
    from difflib import get_close_matches

    known = [str(one) for one in kind.choices]
    seen = message.partition("'")[2].partition("'")[0]
    near = get_close_matches(seen, known, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"{seen!r} is none of {', '.join(known)}{meant}"


def what_and_advice(error: TidewheelError) -> tuple[str, str]:
    """Splits an error into two sentences: what happened, and what to do.

    Errors say both in one message, with the advice as its last part; some give no advice.
    """
    text = str(error)
    match error:
        case InvalidTask():
            findings = "; ".join(error.findings)
            return f"the task is not accepted: {findings}", "Correct this and submit again"
        case NotFound():
            return text, _where_to_look(error)
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
    return text, ""


def _where_to_look(missing: NotFound) -> str:
    if isinstance(missing, LikeAnother):
        return f"Did you mean {missing.other}? {LOOK_FOR[missing.kind]}"
    is_id_of_run = missing.kind == "task" and "/" in missing.name
    otherwise = "Check the name, and whether this is the right store"
    return LOOK_FOR.get("task of a run" if is_id_of_run else missing.kind, otherwise)


def _show(code: str, what: str, advice: str, *, as_json: bool) -> None:
    if as_json:
        error = {"code": code, "message": what, "advice": advice}
        click.echo(json_line({"error": error}), err=True)
        return
    click.echo(f"tidewheel: {safe(what.rstrip('.'))}", err=True)
    click.echo(f"  {safe(advice[:1].upper() + advice[1:].rstrip('.'))}", err=True)
