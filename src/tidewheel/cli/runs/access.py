"""Asks and commands runs: through the store, or inside a job through its worker.

A job cannot open the store; it asks its worker, with the secret of its attempt. A store that is
named with --store is asked itself, inside a job as well.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar

from tidewheel.cli.output import note
from tidewheel.cli.session import Session
from tidewheel.errors import NotFound, Refused, Unavailable
from tidewheel.lazy_dataclasses import NamedTuple

if TYPE_CHECKING:
    from tidewheel.client.runs import Runs
    from tidewheel.core.operator.verbs import Command

WAIT_TOLD_SECONDS = 4.0  # then people are told what waits; a kept command is answered before
JOB = ("TIDEWHEEL_JOB_DIR", "TIDEWHEEL_SECRET", "TIDEWHEEL_WORKFLOW_ID")

Document = dict[str, object]
Result = TypeVar("Result")


Arguments = Callable[["Target"], Document]  # of a view, from the words behind the run
Asked = Callable[["Target"], "Command"]


class OwnJob(NamedTuple):
    """Holds the folder and the run of the job that this command is part of, and the secret
    by which its worker knows it."""

    directory: Path
    secret: str
    run: str


class Given(NamedTuple):
    """Holds a command that was given to a run, and the run's answer."""

    run: str
    command: Command
    number: int | None  # in the history of the run; None inside a job
    answer: Document

    @property
    def verb(self) -> str:
        return self.command.verb


def this_job(session: Session) -> OwnJob | None:
    """Returns the job that this command is part of; None outside of a job of a run."""
    directory, secret, run = map(os.environ.get, JOB)
    if session.store or not directory or not secret or not run:
        return None
    return OwnJob(Path(directory), secret, run)


def look(session: Session, name: str, words: Sequence[str], arguments: Arguments) -> Document:
    """Returns the view called ``name`` of the run that the words name.

    ``arguments`` makes the arguments of the view from the words behind the run.
    """
    job = this_job(session)
    if job is not None:
        target = target_in_job(job.run, words)
        return _call(job, {"look": name, "arguments": {"run": target.run} | arguments(target)})

    async def ask(runs: Runs) -> Document:
        target = await find_target(runs, words)
        return await runs.look(name, **({"run": target.run} | arguments(target)))

    return with_runs(session, ask)


def give(
    session: Session,
    words: Sequence[str],
    command: Asked,
    *,
    any_word: bool = False,
    seconds_max: float | None = None,
) -> Given:
    """Gives a command to the run that the words name, and waits for the answer.

    ``command`` makes it from the words behind the run. With `any_word`, a first word that names
    no run counts among these.
    """
    import asyncio
    import json

    from tidewheel.core.operator.verbs import command_text

    job = this_job(session)
    if job is not None:
        target = target_in_job(job.run, words, any_word=any_word)
        asked = command(target)
        said = json.loads(command_text(asked))
        if target.run != job.run:
            raise Refused(f"a job may act on its own run, {job.run}, not on {target.run}")
        answer = _call(job, {"command": said})
        return Given(target.run, asked, None, answer)

    async def ask(runs: Runs) -> Given:
        target = await find_target(runs, words, any_word=any_word)
        asked = command(target)
        waits = f"waiting for the scheduler of {target.run} to answer …"

        def tell() -> None:
            if not session.as_json:
                note(waits)

        telling = asyncio.get_running_loop().call_later(WAIT_TOLD_SECONDS, tell)
        try:
            made = await runs.give(target.run, asked, seconds_max=seconds_max)
        finally:
            telling.cancel()
        return Given(made.run, asked, made.number, made.document)

    return with_runs(session, ask)


def with_runs(session: Session, ask: Callable[[Runs], Awaitable[Result]]) -> Result:
    """Opens the store, asks something about its runs, and returns the answer."""
    return session.ask(lambda client: ask(client.runs))


def tell_of_unread(session: Session, name: str) -> None:
    """Tells the user if the folder of a run has changes that the run does not have: its jobs
    would fail again as they did."""
    if session.as_json or this_job(session) is not None:
        return
    from tidewheel.cli.runs.remote import folder_here
    from tidewheel.services.definition_sync import differs_from_folder

    async def told(runs: Runs) -> None:
        run = await runs.find(name)
        folder = folder_here(run.folder)
        if not folder or not Path(folder).exists():
            return
        if differs_from_folder(await runs.definition(run.name), Path(folder)):
            note(
                f"{folder} has changed since {run.name} read it, and its jobs start without "
                f"the changes; apply them: tidewheel reload {quote(run.name)}"
            )

    with suppress(Refused, Unavailable):  # what was asked is answered
        with_runs(session, told)


def _call(job: OwnJob, request: Document) -> Document:
    from tidewheel.runners.messages.client import call_run

    return call_run(job.directory, job.secret, request)


# ---- Which run, and which of its tasks, the words of a command line mean. ----

BETWEEN = "//"
SIGNS_OF_IDS = "/.*?[:^$"


class Target(NamedTuple):
    """Holds the run that the words of a command line name, and the words behind it."""

    run: str
    rest: tuple[str, ...] = ()


async def find_target(runs: Runs, words: Sequence[str], *, any_word: bool = False) -> Target:
    """Returns the run that the words name, looked up in the store, and the words behind it.

    Without a name the store's only run is meant. Raises a refusal if there is none, or more
    than one.
    """
    if not words:
        return Target((await runs.find()).name)
    first, *rest = words
    run, between, tail = first.partition(BETWEEN)
    ids = _without_signs([tail, *rest] if tail else rest)
    if between:
        return Target((await runs.find(run)).name, ids)
    try:
        return Target((await runs.find(first)).name, ids)
    except NotFound as unknown:
        # Where the workflow `forecast` has runs, `forecast/run9` is one that is not there.
        workflow = first.partition("/")[0]
        if not any_word and (
            not looks_like_id(first) or (await runs.list(workflow=workflow, count=1))["runs"]
        ):
            raise await _with_nearest(runs, unknown) from None
    return Target((await runs.find()).name, _without_signs(words))


async def _with_nearest(runs: Runs, unknown: NotFound) -> NotFound:
    """Returns the same error with the name of a run, or its workflow, that may be meant."""
    from tidewheel.cli.error_output import LikeAnother
    from tidewheel.core.graph.findings import nearest

    listed: Any = await runs.list()
    known = [str(one[name]) for one in listed["runs"] for name in ("name", "workflow")]
    near = nearest(unknown.name, known)
    if near is None:
        return unknown

    return LikeAnother(unknown, near)


def target_in_job(own_run: str, words: Sequence[str], *, any_word: bool = False) -> Target:
    """Returns the run that the words of a command inside a job name, and the words behind it.

    The job's own run need not be named, and nothing is looked up.
    """
    if not words:
        return Target(own_run)
    first, *rest = words
    run, between, tail = first.partition(BETWEEN)
    ids = _without_signs([tail, *rest] if tail else rest)
    if between:
        return Target(run or own_run, ids)
    if first == own_run or own_run.startswith(f"{first}/"):
        return Target(own_run, ids)
    if any_word or looks_like_id(first):
        return Target(own_run, _without_signs(words))
    return Target(first, ids)


def looks_like_id(word: str) -> bool:
    """Says whether a word may be the id of a task or a point.

    A number is that of a run if there is one, else a point.
    """
    return word.isdigit() or any(sign in word for sign in SIGNS_OF_IDS)


def _without_signs(ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(one.removeprefix(BETWEEN) for one in ids)
