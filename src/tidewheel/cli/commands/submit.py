"""Does ``tidewheel submit``: stores tasks and, with --wait, waits until they have ended."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

import click

from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.output import note, plural, safe, say, say_json
from tidewheel.cli.parameters import DURATION, DURATIONS, NEED, SIZE, VARIABLE, name_options
from tidewheel.cli.session import Session, Words, check_beside, option, session_command
from tidewheel.client.fields import QUEUE_DEFAULT, TaskFields, explained
from tidewheel.errors import BadSetting
from tidewheel.exact_json import decode

if TYPE_CHECKING:
    from tidewheel.api.tasks import Task
    from tidewheel.client import AsyncClient
    from tidewheel.client.async_client import Batch
    from tidewheel.core.queue.requests import Submitted

# Options that are fields of the task under another name.
_FIELDS = {
    "retry_delay": "retry_delays",
    "label": "labels",
    "key": "unique_key",
    "directive": "directives",
}

_EXECUTED = frozenset({"command", "handler", "spec_text", "compose"})

EPILOG = """\b
Examples:
  tidewheel submit -- convert in.png out.jpg
  tidewheel submit --command 'set -eo pipefail; sort data | uniq -c > counts' --retries 2
  tidewheel submit --handler resize --spec '{"width": 640}' --wait
  tidewheel submit --file tasks.jsonl
The file has one JSON object per line; its keys are the fields of `Client.submit`:
  {"id": "b", "command": "echo b", "needs": ["a"], "timeout": "10m"}
"""


@session_command("submit", epilog=EPILOG)
@click.argument("argv", metavar="[-- PROGRAM ARGUMENTS...]", nargs=-1)
@option(
    "--command TEXT",
    "A shell command (bash), instead of PROGRAM. Its last command decides whether it "
    "succeeded, unless it begins with: set -eo pipefail.",
)
@option("--handler TEXT", "The Python function to call, by the name that a worker registered.")
@option("--spec JSON|@FILE|-", "JSON input that is passed to the handler.")
@option(
    "--env environment ...",
    "A variable for the command; for a VALUE secret:NAME, the worker inserts the secret. "
    "Repeatable.",
    type=VARIABLE,
)
@option(
    "--file file",
    "Submit many tasks from this file, one JSON object per line.",
    type=click.File("r", "utf-8"),
)
@option("--atomic", "With --file: store all tasks or none.")
@option("--queue TEXT", "The queue to put the task into.", shown=QUEUE_DEFAULT)
@option("--priority", "0 to 4294967295, higher first. [default: 50]", type=int)
@option(
    "--needs ...",
    "Run after this task has succeeded, or has made OUTPUT; repeatable.",
    type=NEED,
)
@option("--retries", "How often to try again after a failure.", type=int)
@option(
    "--retry-delay",
    "Delays before the retries, such as 1s,10s; the last delay repeats.",
    type=DURATIONS,
)
@option("--timeout", "How long one attempt may run.", type=DURATION)
@option("--delay", "Do not start before this time has passed.", type=DURATION)
@option("--cpu", "Cores one attempt uses.", type=float)
@option("--memory", "Memory one attempt uses: 2GiB.", type=SIZE)
@option("--gpu", "GPUs one attempt uses.", type=int)
@option("--nodes", "Machines one attempt uses. [default: 1]", type=int)
@option(
    "--exclusive", "No other task may run on these machines during an attempt.", default=None
)
@option("--buffer", "Buffer space one attempt uses: 2TB.", type=SIZE)
@option("--label TEXT...", "Only workers with this label may take the task; repeatable.")
@option("--runner TEXT", "What runs the task: slurm, compose or swarm. [default: bash]")
@option("--compose FILE", "The compose file for compose and swarm.")
@option(
    "--directive NAME=VALUE...",
    "A directive for Slurm: --directive --mem=2G; repeatable. #SBATCH lines in the command "
    "have precedence.",
)
@option(
    "--key TEXT",
    "While a task with this key has not ended, its queue accepts no other task with this key: "
    "the same task is not stored again, and a different task is refused.",
)
@name_options(explained(TaskFields))
@option(
    "--id TEXT", "The id of the task; it must never have been used before. [default: generated]"
)
@option("--name TEXT", "The name of the task; no other task may have it.")
@option("--wait", "Wait until the task has ended; exit 1 unless it succeeded.")
def command(session: Session, argv: Words, *, wait: bool, **options: Any) -> int:  # noqa: ANN401
    """Store a task for a worker to execute, and print its id.

    PROGRAM runs with exactly these arguments; for pipes and variables use --command.
    """
    file, atomic = options.pop("file"), options.pop("atomic")
    if file is not None:
        beside = [one for one in options if one != "queue" and options[one] not in (None, ())]
        if argv or beside:
            what = "PROGRAM" if argv else f"--{beside[0].replace('_', '-')}"
            told = f"{what} is for one task and does not work with --file; put it into the file"
            raise click.UsageError(told)
        fields = read_tasks(file, str(options["queue"]))
        return session.ask_or_make(
            lambda client: _submit_many(client, session, fields, atomic, wait)
        )
    check_beside({"atomic": "file", "retry_delay": "retries", "compose": "runner"})
    task = _fields(argv, options)
    return session.ask_or_make(lambda client: _submit_one(client, session, task, wait=wait))


def _fields(argv: Words, options: dict[str, object]) -> dict[str, Any]:
    """Returns the options that were given, as fields of a task.

    Raises a usage error if there is nothing to execute, or something contradicts something
    else.
    """
    if argv and options["command"] is not None:
        raise click.UsageError("give PROGRAM or --command, not both")
    if len(argv) == 1 and " " in argv[0] and shutil.which(argv[0]) is None:
        raise click.UsageError(
            f"there is no program named {argv[0]!r}; for a line of bash write: tidewheel "
            f"submit --command {join(argv)}"
        )
    if argv:
        options["command"] = join(argv)
    given: dict[str, Any] = {
        _FIELDS.get(name, name): value
        for name, value in options.items()
        if value is not None and value != ()
    }
    if "environment" in given:
        given["environment"] = dict(given["environment"])
    if "spec" in given:
        given["spec_text"] = read_spec(given.pop("spec"))
    if "compose" in given:
        name = str(given["compose"])
        try:
            given["compose"] = Path(name).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            reason = f"the compose file {name} cannot be read: {error}"
            raise click.UsageError(reason) from error
    given["needs"] = [list(need) if need[1] else need[0] for need in given.get("needs", ())]
    # A variable of a script that was never set must not become a task that succeeds.
    is_blank = not str(given.get("command", "-")).strip()
    if is_blank or (not given["needs"] and not _EXECUTED & given.keys()):
        raise click.UsageError(
            "there is nothing to execute; give PROGRAM, --command, --handler or --spec "
            "(with only --needs, the task executes nothing and other tasks can wait for it)"
        )
    return given


async def _submit_one(
    client: AsyncClient, session: Session, fields: dict[str, Any], *, wait: bool
) -> int:
    submitted = await client.submit(**fields)
    told: dict[str, object] = {"id": submitted.id, "created": submitted.created}
    if not wait:
        if session.as_json:
            say_json(told)
            return 0
        say(safe(submitted.id))
        await _explain(client, submitted.id, created=submitted.created)
        return 0
    if not session.as_json:
        note(safe(submitted.id))
        await _say_reasons(client, submitted.id)
    [task] = await _wait(client, session, [submitted.id])
    if session.as_json:
        from tidewheel.api.wire import document

        say_json(told | {"task": document(task)})
    return _exit_status([task])


async def _submit_many(
    client: AsyncClient, session: Session, tasks: list[dict[str, Any]], atomic: bool, wait: bool
) -> int:
    # The line numbers are no fields of tasks. Of an id that comes twice the last line counts.
    lines = {str(task["id"]): task.pop(LINE) for task in tasks}
    batch = await client.submit_many(tasks, atomic=atomic)
    refused = len(batch.failed) + len(batch.invalid)
    if session.as_json:
        told = {
            "inserted": list(batch.inserted),
            "present": list(batch.present),
            "failed": [_refusal(one, lines) for one in batch.failed],
            "invalid": [_refusal(one, lines) for one in batch.invalid],
        }
        say_json(told)
    else:
        _say_batch(batch, lines)
    ids = [*batch.inserted, *batch.present]
    if wait and ids:
        ended = await _wait(client, session, ids)
        return ExitCode.REFUSED if refused else _exit_status(ended)
    if ids and not session.as_json:
        await _explain(client, ids[0], created=True)
    return ExitCode.REFUSED if refused else ExitCode.DONE


def _say_batch(batch: Batch, lines: dict[str, int]) -> None:
    for task_id in batch.inserted:
        say(safe(task_id))
    for one in (*batch.failed, *batch.invalid):
        note(f"line {lines.get(one.id)} refused: {safe(one.refused)}")
    counts = f"{plural(len(batch.inserted), 'task')} submitted"
    if batch.present:
        counts += f", {len(batch.present)} existed already"
    if refused := len(batch.failed) + len(batch.invalid):
        counts += f", {refused} refused"
    note(counts)


async def _explain(client: AsyncClient, task_id: str, *, created: bool) -> None:
    """Tells a person whether the task is new, why it does not run yet, and how to follow it."""
    task = await client.get(task_id)
    if not created:
        note(f"this task exists already, so nothing was submitted; its status is {task.status}")
    await _say_reasons(client, task.id)
    note(f"look at it: tidewheel task {safe(task.id)}")


async def _say_reasons(client: AsyncClient, task_id: str) -> None:
    for reason in await client.why(task_id):
        note(safe(reason))


async def _wait(client: AsyncClient, session: Session, ids: list[Any]) -> list[Task]:
    from tidewheel.cli.pages.task_progress import follow, say_results

    if session.as_json:
        return await client.wait(*ids)
    tasks = await follow(client, ids)
    await say_results(client, tasks)
    return tasks


def _exit_status(tasks: list[Task]) -> int:
    succeeded = all(task.status == "succeeded" for task in tasks)
    return ExitCode.DONE if succeeded else ExitCode.FAILED


# ---- Tasks and specs that come from files or standard input. ----

LINE = "line of the file"
LINE_ACCEPTED = 'a JSON object, such as {"command": "echo hello"}'


def read_tasks(lines: Iterable[str], queue: str) -> list[dict[str, Any]]:
    """Reads the fields of one task per line; empty lines are skipped.

    Raises BadSetting with the number of a line that is no JSON object.
    """
    from tidewheel.client.async_client import new_id

    tasks = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            fields = decode(line)
        except ValueError as error:
            accepted = f"{LINE_ACCEPTED} ({error})"
            raise BadSetting(f"line {number}", line.strip()[:80], accepted) from None
        if not isinstance(fields, dict):
            raise BadSetting(f"line {number}", line.strip()[:80], LINE_ACCEPTED)
        # Named here, so that a refusal can be traced to its line.
        tasks.append({"queue": queue, "id": new_id(), **fields, LINE: number})
    return tasks


def read_spec(given: str) -> str:
    """Returns the JSON text of a spec: as given, from a file (@FILE), or standard input (-)."""
    if given == "-":
        return sys.stdin.read()
    if given.startswith("@"):
        return Path(given[1:]).read_text(encoding="utf-8")
    return given


def _refusal(one: Submitted, lines: Mapping[str, int]) -> dict[str, object]:
    """Returns why a task was not stored, with its line in the file."""
    assert one.refused is not None
    why = {"code": one.refused.code, "message": str(one.refused)}
    return {"line": lines.get(one.id), "id": one.id, **why}
