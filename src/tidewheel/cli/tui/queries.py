"""Asks what the screen wants of a run: views as lines, commands with what they would do."""

from __future__ import annotations

import codecs
import shlex
from collections.abc import AsyncIterator, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from tidewheel.cli.error_output import what_and_advice
from tidewheel.cli.output import plural, safe, safe_lines
from tidewheel.cli.pages.answer import answer_lines
from tidewheel.cli.pages.format import Document, documents
from tidewheel.cli.runs.access import Given
from tidewheel.cli.tui.keymap import ShowLog
from tidewheel.cli.tui.panes import QUESTION, TASK, Pane, run_lines, task_lines, would_do_lines
from tidewheel.cli.tui.spans import BOLD, DIM, Line, line
from tidewheel.cli.tui.state import Choice, Question
from tidewheel.cli.verbs import TABLE
from tidewheel.core.operator.verbs import VERBS, Command
from tidewheel.errors import Refused, TidewheelError

if TYPE_CHECKING:
    from tidewheel.client.runs import Runs

TAIL_BYTES = 64_000
WAIT_SECONDS = 5.0
IDS_SHOWN_MAX = 10  # in one line
IDS_NAMED_MAX = 50


async def task_pane(runs: Runs, run: str, task: str) -> Pane:
    page = await runs.show(run, task)
    [found] = documents(page, "tasks")
    return Pane(kind=TASK, subject=safe(task), lines=tuple(task_lines(found)))


async def choice_of_runs(runs: Runs, current: str) -> Choice:
    found = run_lines(await runs.list())
    names = tuple(name for name, _ in found)
    at = names.index(current) if current in names else 0
    return Choice(names, tuple(one for _, one in found), at)


def command_of(question: Question, mode: str) -> Command:
    """Returns the command of a question: the value that the command line would make."""
    kind: Any = VERBS[question.verb]
    known = {one.name for one in fields(kind)}
    given: dict[str, object] = {"ids": question.ids} if "ids" in known else {}
    return kind(**given, **({"mode": mode} if mode else {}))  # type: ignore[no-any-return]


def typed_line(run: str, question: Question) -> str:
    """Returns what would be typed in a shell for the same command, to be copied."""
    ids = map(shlex.quote, question.ids[:IDS_SHOWN_MAX])
    more = ["…"] if len(question.ids) > IDS_SHOWN_MAX else []
    return " ".join(("tidewheel", question.verb, shlex.quote(run), *ids, *more))


def which_lines(question: Question) -> Iterator[str]:
    """Yields how many tasks a question is about, and those that the line above left out."""
    if question.filter:
        many = plural(len(question.ids), "task")
        yield f"{many}, as the filter {safe(question.filter)} shows"
    if question.hidden:
        yield f"left alone: {question.hidden} marked, which the filter hides"
    for one in question.ids[IDS_SHOWN_MAX:IDS_NAMED_MAX]:
        yield f"  {safe(one)}"
    if (more := len(question.ids) - IDS_NAMED_MAX) > 0:
        yield f"  and {more} more"


async def question_pane(runs: Runs, run: str, question: Question) -> Pane:
    """Returns a pane with what would happen, or why nobody can tell."""
    verb = TABLE[question.verb]
    sentence = verb.help.split("\n\n")[0].strip()
    lines: list[Line] = [line(sentence), line(typed_line(run, question), DIM)]
    lines += [*map(line, which_lines(question)), ()]
    if verb.dry_run:
        try:
            page = await runs.dry_run(run, command_of(question, ""))
            lines += would_do_lines(page)
        except Refused as refused:
            what, advice = what_and_advice(refused)
            lines += [line("it would be refused:", BOLD), line(safe(what))]
            lines.append(line(safe(advice), DIM))
    return Pane(kind=QUESTION, subject=f"{question.verb} in {safe(run)}", lines=tuple(lines))


async def give(runs: Runs, run: str, question: Question, mode: str) -> list[str]:
    """Gives the command; returns what became of it."""
    command = command_of(question, mode)
    answer = await runs.give(run, command)
    return list(answer_lines(Given(answer.run, command, answer.number, answer.document)))


def trouble_text(error: Exception) -> str:
    if isinstance(error, TidewheelError):
        return "; ".join(filter(None, what_and_advice(error)))
    return str(error) or repr(error)


async def log_lines(runs: Runs, run: str, wish: ShowLog) -> AsyncIterator[list[Line]]:
    """Yields what a log has, and what comes, as whole lines; the last one when it is over."""
    asked: Document = {"id": wish.id or "", "file": wish.file, "submit": wish.submit}
    if wish.attempt is not None:
        asked = {**asked, "attempt": wish.attempt}
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    part = await runs.log_part(run, asked, bytes_max=TAIL_BYTES)
    rest = ""
    while True:
        text = rest + decoder.decode(part.content, final=part.over)
        whole, end, rest = text.rpartition("\n")
        found = safe_lines(whole).expandtabs().split("\n") if end else []
        if part.over and rest:
            found.append(safe_lines(rest).expandtabs())
            rest = ""
        yield [line(one) for one in found]
        if part.over:
            return
        place = part.place
        asked = {**asked, "submit": place.submit, "attempt": place.attempt}
        part = await runs.log_part(
            run, asked, offset=part.next_offset, wait_seconds=WAIT_SECONDS
        )
