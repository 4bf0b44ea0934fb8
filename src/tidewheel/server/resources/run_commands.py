"""Passes commands to the scheduler of a run: the verbs of ``core.operator.verbs``."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Annotated, Any

import msgspec

from tidewheel.api.run_details import DryRun
from tidewheel.api.views import VIEWS
from tidewheel.core.operator.definition import read_job_name
from tidewheel.core.operator.verbs import (
    REOPENING,
    VERBS,
    Command,
    Message,
    command_text,
    read_command,
)
from tidewheel.core.queue.access import Scope
from tidewheel.errors import NoAnswer, Refused
from tidewheel.server.call import Answer, Call
from tidewheel.server.errors import BadBody, BadRequest
from tidewheel.server.job_rules import operating_own_run
from tidewheel.server.load_shedding import Urgency
from tidewheel.server.long_poll import unless_stopping
from tidewheel.server.resources.runs import READS, RUN, run_door
from tidewheel.server.routes import Needs, Route, no_queue, workflow_of_run
from tidewheel.server.run_services import Result
from tidewheel.server.wire.validation import In, Out, check_body, read

WAIT_SECONDS_DEFAULT = 25.0  # for a scheduler to obey
WAIT_SECONDS_MAX = 60.0
REQUEST_SECONDS_MAX = WAIT_SECONDS_MAX + 10.0
ACCEPTED = 202
NAMED_MAX = 5  # tasks, in the audit
Document = dict[str, Any]

OPERATES = Needs(scopes=(Scope.OPERATE,), queues=no_queue, workflows=workflow_of_run)


class CommandQuery(In):
    """The parameters of a command; with dry_run the answer is what would be done.

    wait_s is how long to wait until the scheduler has obeyed; 0: not at all.
    """

    dry_run: bool = False
    wait_s: Annotated[float, msgspec.Meta(ge=0, le=WAIT_SECONDS_MAX)] = WAIT_SECONDS_DEFAULT


class ObeyedOut(Out):
    """A command that was obeyed; its number is that of the history.

    With status 202 nobody has obeyed it yet. An answer with `kept` says that the run has ended,
    and goes on with the command once a scheduler serves it; `next` would carry it on.
    """

    run: str
    number: int
    verb: str
    answer: Document


class TriedIn(In):
    """A command, to see what it would do: its verb and its fields."""

    command: Document


def _parsing(verb: str) -> Callable[[Call], object]:
    def parse(call: Call) -> object:
        check_body(call.raw)
        try:
            given = json.loads(call.raw or b"{}")
        except (ValueError, RecursionError) as error:
            raise BadBody(f"the body is not valid JSON: {error}") from None
        if not isinstance(given, dict) or "verb" in given:
            raise BadRequest([f"an object with the fields of {verb} is wanted"])
        return _command({"verb": verb} | given)

    return parse


def _parse_tried(call: Call) -> object:
    return _command(read(call.raw or b"{}", TriedIn).command)


def _command(said: Document) -> Command:
    try:
        return read_command(json.dumps(said))
    except Refused as error:
        raise BadRequest([str(error)]) from None


async def _tried(call: Call) -> Document:
    run, said = await call.found_run(), json.loads(command_text(call.body))
    looking = run_door(call).look("dry-run", {"run": run.name, "command": said})
    return await call.doors.apart(looking)


async def give(call: Call) -> object:
    assert call.token is not None
    query, run, door = call.query_as(CommandQuery), await call.found_run(), run_door(call)
    command = call.body
    call.targets += _named(command)
    if query.dry_run:
        call.only_tried = True
        return await _tried(call)
    who = f"{call.token.name} (token {call.token.number})" if call.job is None else _job(call)
    # A run that has ended is read first, to see whether it would refuse.
    is_read = isinstance(command, REOPENING) and run.can_be_reopened(await call.store.now())
    apart = call.doors.apart if is_read else _here
    if not query.wait_s:
        number = await apart(door.post(run.name, command, who=who))
        waiting = ObeyedOut(run=run.name, number=number, verb=command.verb, answer={})
        return Answer(body=waiting, status=ACCEPTED)
    giving = door.give(run.name, command, who=who, seconds_max=query.wait_s)
    done = await unless_stopping(call, apart(giving))
    if done is None:
        raise NoAnswer(f"this server stops; {command.verb} waits for the scheduler")
    said = ObeyedOut(run=done.run, number=done.number, verb=done.verb, answer=done.document)
    return Answer(body=said, status=ACCEPTED) if done.document.get("kept") else said


async def _here(work: Coroutine[Any, Any, Result]) -> Result:
    return await work


def _named(command: Command) -> list[str]:
    """The first tasks that it names, as they were written."""
    ids = [command.id] if isinstance(command, Message) else getattr(command, "ids", ())
    more = len(ids) - NAMED_MAX
    return [*ids[:NAMED_MAX], *([f"and {more} more"] if more > 0 else [])]


def _job(call: Call) -> str:
    """Returns the name of the job, as history has it for one that asks through its worker."""
    assert call.job is not None
    return f"job {read_job_name(call.job.task.id).text}"


ROUTES = (
    Route(
        method="POST",
        path=RUN + VIEWS["dry-run"].path,
        guard=READS,
        handler=_tried,
        says=VIEWS["dry-run"].says,
        body=TriedIn,
        parse=_parse_tried,
        answers=DryRun,
        audited=False,
        urgency=Urgency.READ,
    ),
    *(
        Route(
            method="POST",
            path=f"{RUN}/{verb}",
            guard=replace(OPERATES, job=operating_own_run),
            handler=give,
            says=(kind.__doc__ or verb).splitlines()[0],
            query=CommandQuery,
            body=kind,
            parse=_parsing(verb),
            answers=(ObeyedOut, DryRun),
            may_be_later=True,
            seconds_max=REQUEST_SECONDS_MAX,
        )
        for verb, kind in VERBS.items()
    ),
)
