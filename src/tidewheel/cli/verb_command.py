"""Commands for acting on runs, made from the table of verbs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, cast

import click

from tidewheel.cli.parameters import DURATION
from tidewheel.cli.session import Session, session_command
from tidewheel.cli.verbs import TABLE, Verb, VerbOption
from tidewheel.core.operator.verbs import REOPENING_VERBS, VERBS

if TYPE_CHECKING:
    from tidewheel.cli.runs.access import Given, Target
    from tidewheel.client.runs import Runs
    from tidewheel.core.operator.verbs import Command

ANSWER_SECONDS_MAX = 30.0


def verb_command(name: str) -> click.Command:
    """Returns the click command of a verb."""
    verb = TABLE[name]

    def call(session: Session, words: tuple[str, ...], **options: object) -> int:
        return give_verb(session, name, words, options)

    call.__doc__ = verb.help
    lines = "\n".join(f"  tidewheel {example}" for example in verb.examples)
    epilog = f"\b\nExamples:\n{lines}\n" if lines else None
    command = session_command(name, epilog=epilog)(call)
    words = click.Argument(["words"], nargs=-1, metavar=verb.words)
    options = [_option(verb, one) for one in verb.options]
    tried = [dry_run_option()] if verb.dry_run else []
    reopened = [_carry_on_option()] if name in REOPENING_VERBS else []
    command.params[:0] = [words, *options, _timeout(), *reopened, *tried]
    return command


def dry_run_option() -> click.Option:
    """Returns the option that only tries it."""
    help_text = "Only show what would change, run and wait."
    return click.Option(["--dry-run", "-n"], is_flag=True, help=help_text)


def _carry_on_option() -> click.Option:
    """Returns the option for a run that has ended."""
    help_text = "If the run has ended and no scheduler serves it: carry it on here, at once."
    return click.Option(["--run", "carries_on"], is_flag=True, help=help_text)


def _timeout() -> click.Option:
    return click.Option(
        ["--timeout", "--comms-timeout", "seconds_max"],
        type=DURATION,
        default=ANSWER_SECONDS_MAX,
        help="How long to wait for the answer. [default: 30s]",
    )


def _option(verb: Verb, option: VerbOption) -> click.Option:
    [kind] = [str(one.type) for one in fields(VERBS[verb.name]) if one.name == option.field]
    names = [*option.names, _parameter(option)]
    if option.value is not None or kind == "bool":
        return click.Option(names, is_flag=True, help=option.help)
    if kind.startswith("tuple"):
        return click.Option(names, multiple=True, metavar=option.metavar, help=option.help)
    if kind.startswith("int"):
        number = click.IntRange(1)
        return click.Option(names, type=number, metavar=option.metavar, help=option.help)
    return click.Option(names, metavar=option.metavar, help=option.help)


def _parameter(option: VerbOption) -> str:
    """Several flags may fill one field, so each has a name of its own."""
    return option.field if option.value is None else f"{option.field}_is_{option.value}"


def fields_given(name: str, options: Mapping[str, object]) -> dict[str, object]:
    """The fields of a command that were said; two options for one field are refused."""
    found: dict[str, object] = {}
    for option in TABLE[name].options:
        said = options[_parameter(option)]
        if said in (None, False, ()):
            continue
        if option.field in found:
            both = " and ".join(
                one.names[0] for one in TABLE[name].options if one.field == option.field
            )
            raise click.UsageError(f"{both} do not go together")
        found[option.field] = option.value if option.value is not None else said
    return found


def command_from(name: str, target: Target, given: Mapping[str, object]) -> Command:
    """The command itself; what stands behind the run are its ids, where it takes any."""
    kind = VERBS[name]
    known = {one.name for one in fields(kind)}
    if "ids" in known:
        _refuse_nothing(name, target, given)
        return kind(ids=target.rest, **given)  # type: ignore[call-arg, arg-type]
    if target.rest and name == "stop":
        return kind(**_stop_bound(target), **given)  # type: ignore[arg-type]
    if target.rest:
        raise click.UsageError(f"{name} concerns the whole run; it takes no {target.rest[0]!r}")
    return kind(**given)  # type: ignore[arg-type]


def _refuse_nothing(name: str, target: Target, given: Mapping[str, object]) -> None:
    instead = {option.field for option in TABLE[name].options if option.replaces_ids}
    if not target.rest and not instead & given.keys():
        raise click.UsageError(
            f"{name} what in {target.run}? Name tasks: "
            f"tidewheel {name} {target.run} POINT/NAME, or '*/NAME:failed'"
        )


def _stop_bound(target: Target) -> dict[str, object]:
    """`stop RUN//5` is at a point, `stop RUN//5/foo` after a task."""
    if len(target.rest) > 1:
        raise click.UsageError("stop takes one point or one task")
    [bound] = target.rest
    return {"after_task": bound} if "/" in bound else {"at_point": bound}


def give_verb(
    session: Session, name: str, words: Sequence[str], options: Mapping[str, object]
) -> int:
    """Gives the command and prints the answer."""
    from tidewheel.cli.runs.access import give

    given = fields_given(name, options)
    if options.get("dry_run"):
        return try_verb(session, words, lambda target: command_from(name, target, given))
    if given.get("all_at_point") and not session.as_json:
        _list_first(session, name, words)
    made = give(
        session,
        words,
        lambda target: command_from(name, target, given),
        seconds_max=cast("float", options["seconds_max"]),
    )
    if made.answer.get("kept") and options.get("carries_on"):
        status = _carry_on(session, made.run)
        return _after_trigger(session, made, status) if name == "trigger" else status
    say_given(session, made)
    return 0


def _carry_on(session: Session, run: str) -> int:
    """Carries a run on, as `tidewheel run NAME` does."""
    from tidewheel.cli.commands.run import command

    where = ["--store", session.store] if session.store else []
    words = [run, *where, *(["--json"] if session.as_json else [])]
    with command.make_context("run", words, parent=click.get_current_context()) as context:
        return cast("int", command.invoke(context))


def _after_trigger(session: Session, made: Given, status: int) -> int:
    """Returns the exit status of a run that was carried on for the sake of a trigger.

    A run may complete although a task failed; whoever triggered that task wanted it done.
    """
    from tidewheel.cli.exit_codes import ExitCode, FinalStatus
    from tidewheel.cli.output import note, safe
    from tidewheel.cli.pages.format import documents
    from tidewheel.cli.runs.access import with_runs

    async def failed(runs: Runs) -> list[str]:
        told = documents(await runs.look("history", run=made.run), "commands")
        answers = [one["answer"] for one in told if one["number"] == made.number]
        ids = [one for answer in answers if answer for one in answer["tasks"]]  # type: ignore[index]
        chosen = await runs.look("select", run=made.run, ids=ids) if ids else {"tasks": []}
        return [str(one["id"]) for one in documents(chosen, "tasks") if _has_failed(one)]

    again = with_runs(session, failed) if status == ExitCode.DONE else []
    for one in again:
        how = f"tidewheel log {made.run} {one} --err"
        note(f"{safe(one)} was triggered and has failed again: {safe(how)}")
    if not again or not isinstance(status, FinalStatus):
        return ExitCode.FAILED if again else status
    return FinalStatus(ExitCode.FAILED, status.last_step)


def _has_failed(task: Mapping[str, object]) -> bool:
    return str(task["state"]).partition(" ")[0] in ("failed", "submit-failed")


def try_verb(
    session: Session, words: Sequence[str], command: Callable[[Target], Command]
) -> int:
    """Prints what a command would do."""
    import json

    from tidewheel.cli.runs.access import look
    from tidewheel.core.operator.verbs import command_text

    def arguments(target: Target) -> dict[str, object]:
        return {"command": json.loads(command_text(command(target)))}

    say_tried(session, look(session, "dry-run", words, arguments))
    return 0


def say_tried(session: Session, document: dict[str, object]) -> None:
    """Prints what a command would do, for people or programs."""
    from tidewheel.cli.output import say_json
    from tidewheel.cli.pages.answer import say_preview

    if session.as_json:
        say_json(document)
    else:
        say_preview(document)


def _list_first(session: Session, name: str, words: Sequence[str]) -> None:
    """A glob over tasks that are not in the pool may mean more than one thinks (§8)."""
    from tidewheel.cli.output import note, safe
    from tidewheel.cli.pages.format import documents
    from tidewheel.cli.runs.access import look

    page = look(
        session,
        "select",
        words,
        lambda target: {"ids": list(target.rest), "all_at_point": True},
    )
    for task in documents(page, "tasks"):
        note(f"{name} {safe(task['id'])}, which is {safe(task['state'])}")


def say_given(session: Session, given: Given) -> None:
    """Prints what became of a command, for people or programs."""
    from tidewheel.cli.output import say_json
    from tidewheel.cli.pages.answer import say_answer

    if session.as_json:
        document = {"run": given.run, "verb": given.verb, "number": given.number}
        say_json(document | {"answer": given.answer})
    else:
        say_answer(given)
