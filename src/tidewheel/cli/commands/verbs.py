"""Defines the commands that act on a run: those of the table of verbs, and three more.

The words of `broadcast`, `ext-trigger` and `reload` mean more than options can say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, cast

import click

from tidewheel.cli.exit_codes import ExitCode, FinalStatus
from tidewheel.cli.output import note, safe, say, say_found
from tidewheel.cli.pages.format import documents
from tidewheel.cli.parameters import DURATION
from tidewheel.cli.runs.access import (
    Asked,
    Given,
    Target,
    find_target,
    give,
    look,
    tell_of_unread,
    this_job,
    with_runs,
)
from tidewheel.cli.session import (
    OptionRow,
    Session,
    Words,
    check_apart,
    option,
    options,
    refuse_said,
    session_command,
)
from tidewheel.cli.verbs import TABLE, Verb, VerbOption
from tidewheel.core.operator.verbs import (
    REOPENING_VERBS,
    VERBS,
    Broadcast,
    ExtTrigger,
    Reload,
    Stop,
    Trigger,
    command_text,
)

if TYPE_CHECKING:
    from tidewheel.client.runs import Runs
    from tidewheel.core.operator.verbs import Command
    from tidewheel.ports.runs import Answer, Document

ANSWER_SECONDS_MAX = 30.0
WAITING = option(
    "--timeout --comms-timeout seconds_max",
    "How long to wait for the scheduler's answer. [default: 30s]",
    type=DURATION,
    default=ANSWER_SECONDS_MAX,
)


def verb_command(name: str) -> click.Command:
    """Returns the click command of a verb, made from its row in the table of verbs."""
    verb = TABLE[name]

    def call(session: Session, words: Words, **options: object) -> int:
        return give_verb(session, name, words, options)

    call.__doc__ = verb.help
    rows = [click.argument("words", nargs=-1, metavar=verb.words)]
    rows += [_option(verb, one) for one in verb.options]
    rows.append(WAITING)
    if name in REOPENING_VERBS:
        text = (
            "If the run has ended and no scheduler drives it: resume it at once, in this "
            "process, and wait for its end. Where a scheduler drives it, nothing is waited for."
        )
        rows.append(option("--run carries_on", text))
    elif name == Stop.verb:
        text = (
            "With --kill, for a run that has stopped: end its remaining jobs from this process."
        )
        rows.append(option("--run carries_on", text))
    if verb.dry_run:
        text = "Do nothing; show what would change, and which tasks would run or wait."
        rows.append(option("--dry-run -n", text))
    return session_command(name, *verb.examples)(options(*rows)(call))


def _option(verb: Verb, row: VerbOption) -> OptionRow:
    [kind] = [str(one.type) for one in fields(VERBS[verb.name]) if one.name == row.field]
    names = f"{row.names}..." if kind.startswith("tuple") else row.names
    number = {"type": click.IntRange(1)} if kind.startswith("int") else {}
    return option(names, row.help, **number)


def fields_given(name: str, options: Mapping[str, object]) -> dict[str, object]:
    """Returns the fields of a command for which an option was given.

    Raises a usage error for two options of one field.
    """
    found: dict[str, object] = {}
    for row in TABLE[name].options:
        said = options[row.parameter]
        if said in (None, False, ()):
            continue
        if row.field in found:
            both = " and ".join(
                one.names.split()[0] for one in TABLE[name].options if one.field == row.field
            )
            raise click.UsageError(f"give only one of {both}")
        found[row.field] = row.parameter.partition("_is_")[2] or said
    return found


def command_from(name: str, target: Target, given: Mapping[str, object]) -> Command:
    """Returns the command of a verb; the words behind the run are its ids, if it takes any."""
    kind = VERBS[name]
    known = {one.name for one in fields(kind)}
    if "ids" in known:
        if not target.rest and TABLE[name].replaces_ids not in given:
            raise click.UsageError(
                f"say which tasks of {target.run}: "
                f"tidewheel {name} {quote(target.run)} POINT/NAME, or '*/NAME:failed'; for a "
                "stage: NAME"
            )
        return kind(ids=target.rest, **given)  # type: ignore[call-arg, arg-type]
    if target.rest and name == "stop":
        # `stop RUN//5` at a point, `stop RUN//5/foo` after a task.
        if len(target.rest) > 1:
            raise click.UsageError("stop takes one point or one task")
        bound = "after_task" if "/" in target.rest[0] else "at_point"
        if bound in given:
            [typed] = [
                one.names.split()[0] for one in TABLE[name].options if one.field == bound
            ]
            raise click.UsageError(f"give {target.rest[0]!r} or {typed}, not both")
        return kind(**{bound: target.rest[0]}, **given)  # type: ignore[arg-type]
    if target.rest:
        raise click.UsageError(f"{name} concerns the whole run; leave out {target.rest[0]!r}")
    return kind(**given)  # type: ignore[arg-type]


def give_verb(
    session: Session, name: str, words: Sequence[str], options: Mapping[str, object]
) -> int:
    """Gives the command of a verb to a run and prints the answer; returns the exit status."""

    def selected(target: Target) -> dict[str, object]:
        return {"ids": list(target.rest), "all_at_point": True}

    given = fields_given(name, options)
    if options.get("dry_run"):
        return try_verb(session, words, lambda target: command_from(name, target, given))
    if given.get("all_at_point") and not session.as_json:
        # A glob may mean more than one thinks: it selects tasks outside the pool, too (§8).
        page = look(session, "select", words, selected)
        for task in documents(page, "tasks"):
            note(f"{name} {safe(task['id'])}, which is {safe(task['state'])}")
    made = give(
        session,
        words,
        lambda target: command_from(name, target, given),
        seconds_max=cast("float", options["seconds_max"]),
    )
    if made.answer.get("kept") and options.get("carries_on"):
        # As `tidewheel run NAME` does.
        from tidewheel.cli.commands.run import command

        where = ["--store", session.store] if session.store else []
        line = [made.run, *where, *(["--json"] if session.as_json else [])]
        with command.make_context("run", line, parent=click.get_current_context()) as context:
            status = cast("int", command.invoke(context))
        if name == Stop.verb:
            return _after_stop(status)
        return _after_kept(session, made, status)
    status = say_given(session, made)
    if options.get("carries_on") and name != Stop.verb and not session.as_json:
        watch = f"watch it: tidewheel tui {quote(made.run)}"
        note(f"a scheduler drives {safe(made.run)}, so --run waits for nothing; {safe(watch)}")
    if name == "trigger":
        tell_of_unread(session, made.run)
    return status


def _after_stop(status: int) -> int:
    """Returns the exit status of a run that was taken up to be stopped: it was, as asked."""
    if isinstance(status, FinalStatus) and int(status) == ExitCode.STOPPED:
        return FinalStatus(ExitCode.DONE, status.last_step)
    return status


def _after_kept(session: Session, made: Given, status: int) -> int:
    """Returns the exit status of a run that was carried on for the sake of a command.

    A run may complete although the command had no effect on some tasks, or a task failed: the
    user who triggered that task wanted it done.
    """
    if status != ExitCode.DONE:
        return status

    async def unmet(runs: Runs) -> list[str]:
        told = documents(await runs.look("history", run=made.run), "commands")
        given = next((one for one in told if one["number"] == made.number), None)
        if given is None:  # too many were given since
            history = f"tidewheel show {quote(made.run)} --history"
            return [f"what {made.verb} did is not known any more; look at it: {history}"]
        if given["refused"] is not None:
            return [f"{made.verb} was refused: {given['refused']}"]
        done = made._replace(answer=cast("Document", given["answer"] or {}))
        again = await _failed(runs, done) if made.verb == Trigger.verb else []
        return [text for text in (undone_text(done), *again) if text]

    from tidewheel.cli.pages.run import undone_text

    texts = with_runs(session, unmet)
    for one in texts:
        note(safe(one))
    if not texts or not isinstance(status, FinalStatus):
        return ExitCode.FAILED if texts else status
    return FinalStatus(ExitCode.FAILED, status.last_step)


async def _failed(runs: Runs, triggered: Given) -> list[str]:
    """Returns what is told of tasks that were triggered, have run, and failed again."""
    ids = list(cast("Document", triggered.answer.get("tasks", {})))
    chosen = await runs.look("select", run=triggered.run, ids=ids) if ids else {"tasks": []}
    return [
        f"{one['id']} was triggered and has failed again; read its log: "
        f"tidewheel log {quote(triggered.run)} {one['id']} --err"
        for one in documents(chosen, "tasks")
        if str(one["state"]).partition(" ")[0] in ("failed", "submit-failed")
    ]


def try_verb(session: Session, words: Sequence[str], command: Asked) -> int:
    """Prints what a command would do, for people or programs."""

    def arguments(target: Target) -> dict[str, object]:
        return {"command": json.loads(command_text(command(target)))}

    from tidewheel.cli.pages.run import say_preview

    return session.answer(look(session, "dry-run", words, arguments), say_preview)


def say_given(session: Session, given: Given) -> int:
    """Prints what became of a command, for people or programs; returns the exit status, which
    is not 0 if the command could not act on all that it names."""
    from tidewheel.cli.pages.run import answer_lines, undone_text

    document = {"run": given.run, "verb": given.verb, "number": given.number}
    status = session.answer(
        document | {"answer": given.answer}, lambda _: say("\n".join(answer_lines(given)))
    )
    if not (undone := undone_text(given)):
        return status
    if not session.as_json:
        note(undone)
    return ExitCode.FAILED


# ---- `broadcast`: settings of tasks that are yet to be submitted ----


@session_command(
    "broadcast",
    "broadcast forecast -n model -s '[environment]DEBUG=1'",
    "broadcast forecast -p 3 -n MODELS -s 'execution time limit=PT2H'",
    "broadcast forecast --clear -p 3",
    "broadcast forecast",
)
@click.argument("words", nargs=-1, metavar="[RUN]")
@option(
    "-p --point --cycle-point points POINT...",
    "Only at this cycle point; repeatable. [default: every point]",
)
@option(
    "-n --namespace namespaces TEXT...",
    "Only for this task or family; repeatable. [default: root, which is every task]",
)
@option(
    "-s --set settings ITEM=VALUE...",
    "A setting as in the definition: '[environment]X=1', 'script=true'; repeatable.",
)
@option(
    "-F --set-file",
    "A file of settings in sections, as in flow.cylc.",
    type=click.Path(path_type=Path),
)
@option("-c --cancel ITEM...", "Cancel this setting; repeatable.")
@option("-C --clear", "Cancel all settings; with -p or -n only those of these points or tasks.")
@option("-e --expire POINT", "Cancel the settings for points before this one.", default="")
@option("-d --display", "Only list the settings.")
def broadcast_command(session: Session, words: Words, **options: Any) -> int:  # noqa: ANN401
    """Change settings of tasks that have not started yet; without options, list the settings
    that are broadcast.
    """
    changes = ("settings", "cancel", "clear", "expire")
    check_apart((*changes, "set_file"), "display")
    is_listed, set_file = options.pop("display"), options.pop("set_file")
    if set_file is not None:
        options["settings"] += tuple(_settings_in(set_file.read_text(encoding="utf-8")))
    if is_listed or not any(options[name] for name in changes):
        return _list_broadcasts(session, words)
    options["points"] = options["points"] or ("*",)
    options["namespaces"] = options["namespaces"] or ("root",)

    def asked(target: Target) -> Broadcast:
        _nothing_behind(target)
        return Broadcast(**options)

    return say_given(session, give(session, words, asked))


def _nothing_behind(target: Target) -> Document:
    """Returns no arguments; raises a usage error for words behind the run."""
    if target.rest:
        word = target.rest[0]
        raise click.UsageError(f"unexpected {word!r}; give points with -p, tasks with -n")
    return {}


def _settings_in(text: str) -> list[str]:
    """Returns the settings in a file, each with the section that it stands in before it."""
    found: list[str] = []
    section = ""
    for line in (raw.strip() for raw in text.splitlines()):
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            section = f"[{line.strip('[]')}]"
        else:
            item, _, value = line.partition("=")
            found.append(f"{section}{item.strip()}={value.strip()}")
    return found


def _list_broadcasts(session: Session, words: Words) -> int:

    def show(page: Document) -> None:
        columns = {name.upper(): name for name in ("point", "namespace", "setting", "value")}
        empty = (
            "no settings are broadcast; set one: tidewheel broadcast RUN -n TASK -s ITEM=VALUE"
        )
        say_found(documents(page, "broadcasts"), columns, empty)

    return session.answer(look(session, "broadcasts", words, _nothing_behind), show)


# ---- `ext-trigger` ----

WORDS_MAX = 2  # behind the run


@session_command("ext-trigger", 'ext-trigger forecast "new data" file-0815')
@click.argument("words", nargs=-1, metavar="[RUN] MESSAGE [TRIGGER_ID]")
def ext_trigger_command(session: Session, words: Words) -> int:
    """Send a run the external MESSAGE that tasks wait for.

    The oldest task that waits for MESSAGE takes it. TRIGGER_ID distinguishes messages with the
    same text; the job receives TRIGGER_ID.
    """

    def asked(target: Target) -> ExtTrigger:
        if not 0 < len(target.rest) <= WORDS_MAX:
            raise click.UsageError(
                f'write: tidewheel ext-trigger {quote(target.run)} "MESSAGE" ID'
            )
        message, *number = target.rest
        return ExtTrigger(message=message, trigger_id="".join(number))

    return say_given(session, give(session, words, asked, any_word=True))


# ---- `reload`: a run goes on with the definition as it is now ----

# The scheduler reads the folder: a job cannot put a definition into the store.
JOB_RELOADS = "a job reloads only the folder of its run"


@session_command("reload", "reload forecast", "reload forecast ~/flows/forecast -s MEMBERS=8")
@click.argument("words", nargs=-1, metavar="[RUN] [DIR]")
@option("-s --set settings NAME=VALUE...", "A template variable; all others stay as they are.")
@option("-n --dry-run", "Only show what would change.")
def reload_command(session: Session, words: Words, settings: Words, *, dry_run: bool) -> int:
    """Reload the definition of a run: from DIR, or from the folder that it came from.

    The new definition replaces the old one completely. If it has an error, nothing changes.
    """
    if this_job(session) is not None:
        refuse_said(("settings",), f"does not work in a job: {JOB_RELOADS}; leave it out")
        if dry_run:
            return try_verb(session, words, _reload_in_job)
        return say_given(session, give(session, words, _reload_in_job))

    async def ask(runs: Runs) -> Answer | Document | int:
        saved = await _save_new(runs, words, settings, as_json=session.as_json)
        if isinstance(saved, int):
            return saved
        run, reload = saved
        return await (runs.dry_run(run, reload) if dry_run else runs.give(run, reload))

    made = with_runs(session, ask)
    if isinstance(made, int):
        return made
    if isinstance(made, dict):
        from tidewheel.cli.pages.run import say_preview

        return session.answer(made, say_preview)
    return say_given(session, Given(made.run, Reload(), made.number, made.document))


def _reload_in_job(target: Target) -> Reload:
    if target.rest:
        what = f"{target.rest[0]!r} does not work in a job"
        raise click.UsageError(f"{what}: {JOB_RELOADS}; leave it out")
    return Reload()


async def _save_new(
    runs: Runs, words: Sequence[str], settings: Words, *, as_json: bool
) -> tuple[str, Reload] | int:
    """Stores the definition of a run as it is now; returns the run and what to ask of it.

    Returns the exit status instead if the definition has errors.
    """

    from tidewheel.cli.definitions import Definition
    from tidewheel.cli.pages.findings import note_findings, refuse
    from tidewheel.cli.runs.remote import folder_here
    from tidewheel.core.graph.findings import Findings
    from tidewheel.core.operator.definition import FLOW_CYLC, not_for
    from tidewheel.errors import NotRunning, Refused

    target = await find_target(runs, words)
    if len(target.rest) > 1:
        raise click.UsageError(f"give one folder, not {len(target.rest)}")
    view = await runs.find(target.run)
    facts = await runs.look("facts", run=view.name)
    if not facts["run"]["driven"]:  # type: ignore[index]  # a document
        raise NotRunning(view.name, view.status)
    text = target.rest[0] if target.rest else folder_here(view.folder)
    path = Path(text)
    if not text or not path.exists():  # Path("") would be wherever this is typed
        raise Refused(
            f"there is no file or folder {text!r} with the definition of {view.name}; say "
            f"where it is: tidewheel reload {quote(view.name)} DIR"
        )
    known = json.loads((await runs.definition(view.name)).variables)
    kind = Definition(path, as_json).kind
    if kind != FLOW_CYLC:  # parameters are the request's: another request is another run
        refuse_said(("settings",), not_for(kind, [FLOW_CYLC]))
    definition = Definition(path, as_json, settings=(*known, *settings))
    findings = Findings()
    # A folder may be called differently; the run keeps the name of its workflow.
    loaded, captured, _ = definition.load_for_run(view.options, findings, view.workflow)
    if captured is None:
        left = f"nothing was reloaded: {view.name} continues with its old definition"
        return refuse(findings, loaded.source, as_json=as_json, left=left)
    if not as_json:
        note_findings(findings, loaded.source)
    digest = await runs.save_definition(view.name, captured.definition)
    return view.name, Reload(definition=digest)
