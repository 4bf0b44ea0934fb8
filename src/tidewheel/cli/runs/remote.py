"""Does ``tidewheel run`` through a server: sends the definition, and follows the run from here.

Ctrl-C ends this command and leaves the run going: a scheduler elsewhere drives it.
"""

from __future__ import annotations

import asyncio
import codecs
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from tidewheel.cli.exit_codes import SIGNALLED, ExitCode
from tidewheel.cli.output import note, safe, safe_lines, say_json
from tidewheel.cli.pages.format import documents, reached, stall_words
from tidewheel.cli.pages.run_progress import JsonPage, RunPage, ended, print_line
from tidewheel.cli.pages.workflows import parts
from tidewheel.cli.runs.pending_tasks import UNTAKEN_SECONDS, UntakenWaits
from tidewheel.cli.runs.request import (
    Chosen,
    Origin,
    Wanted,
    found_run,
    is_exactly,
    new_run,
    refuse_another,
    registered_far,
    tell_of_change,
    tell_of_changed_folder,
    tell_of_namesake_far,
    the_run,
)
from tidewheel.cli.runs.result import Owed, is_still_asked, settled, tell_again, under_way
from tidewheel.client import AsyncClient
from tidewheel.client.local_run import LEFT, RunEnd
from tidewheel.config import home_directory
from tidewheel.core.operator.definition import RunOptions
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.task import Instant
from tidewheel.errors import NotFound, Refused, Unavailable
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.quantities import parse_duration, show_duration
from tidewheel.scheduler.restart_options import is_same_request, newest_of, run_to_carry_on

if TYPE_CHECKING:
    from tidewheel.client.runs import Runs

WAIT_SECONDS = 20.0  # for the next lines, before it is asked again
SILENT_SECONDS = 3.0  # of the log, before a person is told who is missing
AGAIN_SECONDS_MAX = 5.0  # between two attempts to reach the server
NOT_TAKEN = "no scheduler has taken it yet; start one there: tidewheel scheduler"
NOW = Instant(0.0)  # a server says itself whether a run is driven


class Following(NamedTuple):
    """Says at which server a run is followed, and how the run is shown here."""

    server: str
    detach: bool
    as_json: bool
    is_named: bool  # by an option, which the next command needs as well

    @property
    def option(self) -> str:
        """Returns the option with which the next command finds the server; "" if it needs
        none."""
        return f" --server {quote(self.server)}" if self.is_named else ""


def folder_text(folder: str) -> str:
    """Returns the folder of a definition as HOST:FOLDER; "" if it has none.

    The same folder may exist on another machine.
    """
    return f"{socket.gethostname()}:{folder}" if folder else ""


def folder_here(text: str) -> str:
    """Returns the text of ``folder_text`` without the name of this machine, if it has that."""
    return text.removeprefix(f"{socket.gethostname()}:")


async def run_on_server(where: str | None, wanted: Wanted, how: Following) -> int:
    """Begins or finds the run, and follows it until it ends or a signal comes.

    Returns the exit status.
    """
    async with AsyncClient(where) as client:
        runs = client.runs
        chosen = await _chosen(client, wanted, how)
        run, is_new = chosen.run, chosen.is_new
        owed = Owed.from_server(home_directory(), how.server, run)
        if chosen.is_over:
            owed.note(wanted.words)
            end = await tell_again(runs.door, run, as_json=how.as_json, option=how.option)
            return settled(owed, end, None, wanted.fail_on)
        offset = 0
        with suppress(NotFound):  # where the log ends that an earlier start has left
            offset = 0 if is_new else (await runs.log_part(run.name, {}, bytes_max=1)).size
        if not chosen.is_ours:
            await _offer(runs, run, wanted, how, is_new=is_new)
        if how.detach:
            _say_begun(run, how, is_new=is_new)
            return ExitCode.DONE
        owed.note(wanted.words)
        page = (FarJsonPage if how.as_json else FarPage)(run, is_new=is_new)
        page.begins(how)
        signalled = await _followed(runs, run, offset, page)
        if signalled is not None:
            page.leaves()
            return settled(owed, RunEnd(LEFT, ""), signalled, wanted.fail_on)
        end = await ended(runs.door, run, page)
        page.show_end(end)
        return settled(owed, end, None, wanted.fail_on)


# ---- which run ----


async def _chosen(client: AsyncClient, wanted: Wanted, how: Following) -> Chosen:
    runs = client.runs
    if wanted.captured is None:
        return await _named(client, wanted, how)
    await tell_of_namesake_far(client.workflows, wanted)
    definition, folder = wanted.captured.definition, folder_text(wanted.folder)
    if not wanted.is_new and not wanted.name:
        origin = Origin(folder, wanted.request, is_new=False)
        found = await _earlier(runs, definition.workflow, origin, wanted, how)
        if found is not None and not found.is_over:
            tell_of_change(found.run, definition.digest, option=how.option)
            return found
        if found is not None and is_still_asked(found.run, definition.digest):
            return found
    new = new_run(wanted, definition, folder, wanted.name)
    return Chosen(await runs.begin(new, definition), is_new=True)


async def _named(client: AsyncClient, wanted: Wanted, how: Following) -> Chosen:
    """Returns the run of this name, or an earlier or new one of the workflow of this name."""
    named = await found_run(client.runs.find, wanted)
    if is_exactly(named, wanted.name) and not wanted.is_another:
        return await _run_named(client.runs, named, how)
    said = wanted.registered
    found_far = None if said is None else await registered_far(client.workflows, said)
    if found_far is None:

        async def workflows() -> list[str]:
            listed = parts(await client.workflows.list(), "workflows")
            return [str(one["name"]) for one in listed]

        run = await the_run(named, wanted, workflows)
        refuse_another(run, wanted)
        return await _run_named(client.runs, run, how)
    origin, asked = found_far
    if not wanted.is_new and not origin.is_new and not asked.name:
        found = await _earlier(client.runs, asked.workflow, origin, wanted, how)
        if found is not None:
            return found
    return Chosen(await client.workflows.door.begin(asked), is_new=True)


async def _run_named(runs: Runs, run: RunView, how: Following) -> Chosen:
    folder = folder_here(run.folder)
    if folder and Path(folder).exists():
        tell_of_changed_folder(run, folder, await runs.definition(run.name), how.option)
    return Chosen(run)


async def _earlier(
    runs: Runs, workflow: str, origin: Origin, wanted: Wanted, how: Following
) -> Chosen | None:
    """Returns the newest run if it is to go on, or its result is owed; None to begin a new one.
    Raises RunUnderWay if it is driven, or its result is being told, for another command."""
    listed = documents(await runs.list(workflow=workflow), "runs")
    names = [str(one["name"]) for one in listed if one["folder"] == origin.folder]
    views = [await runs.find(name) for name in names[:1]]
    newest = newest_of(views, origin.folder)
    if newest is None:
        return None
    owed = Owed.from_server(home_directory(), how.server, newest)
    is_ours = owed.to(wanted.words)
    follow = reached(f"follow it: tidewheel run {quote(newest.name)}", newest.name, how.option)
    if is_ours and (teller := owed.teller()) is not None:
        raise under_way(newest, follow, teller)
    if newest.is_driven(NOW) and is_same_request(newest, origin.request):
        if not is_ours:
            raise under_way(newest, follow)
        return Chosen(newest, is_ours=True)
    further, request = bool(wanted.options.final), origin.request
    carried_on = run_to_carry_on(
        views, origin.folder, NOW, lambda _: True, goes_further=further, request=request
    )
    if carried_on is not None:
        return Chosen(carried_on)
    return Chosen(newest, is_over=True) if is_ours else None


async def _offer(
    runs: Runs, run: RunView, wanted: Wanted, how: Following, *, is_new: bool
) -> None:
    """Asks for a run that nobody drives to be carried on.

    Raises Refused if the run is driven already and options were given, which would have no
    effect.
    """
    said = replace(wanted.given, now=0.0, compat="", parameters="")
    if is_new:
        return
    is_asked_for = run.given is not None  # by an earlier command, for the next scheduler
    if is_asked_for or run.is_driven(NOW):
        if said != RunOptions(mode=""):
            state = "waits for a scheduler already" if is_asked_for else "already runs"
            text = (
                f"{run.name} {state}; to follow it, leave out the options; to start it with "
                f"them, stop it first: tidewheel stop {quote(run.name)}"
            )
            raise Refused(reached(text, run.name, how.option))
        return
    await runs.carry_on(run.name, wanted.given)


def _say_begun(run: RunView, how: Following, *, is_new: bool) -> None:
    if how.as_json:
        say_json({"run": run.name, "is_new": is_new, "server": how.server})
    else:
        verb, name = "starts" if is_new else "resumes", safe(run.name)
        print_line(f"{name} {verb} at {how.server}")
        text = f"follow it: tidewheel run {quote(name)}; stop it: tidewheel stop {quote(name)}"
        note(reached(text, name, how.option))


# ---- following ----


async def _followed(
    runs: Runs, run: RunView, offset: int, page: FarPage
) -> signal.Signals | None:
    """Follows a run; returns None at its end, else the signal that ended the command before."""
    loop = asyncio.get_running_loop()
    following = loop.create_task(_follow(runs, run, offset, page))
    heard: list[signal.Signals] = []

    def leave(number: signal.Signals) -> None:
        heard.append(number)
        following.cancel()

    for number in SIGNALLED:
        loop.add_signal_handler(number, leave, number)
    try:
        await following
    except asyncio.CancelledError:
        return heard[-1]
    finally:
        for number in SIGNALLED:
            loop.remove_signal_handler(number)
    return None


async def _follow(runs: Runs, run: RunView, offset: int, page: FarPage) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    wait, again = SILENT_SECONDS, 0.0
    rest = ""  # of a line that is not whole yet
    clock, is_told = asyncio.get_running_loop().time, False
    untaken = UntakenWaits(runs.door, run.name, is_here=False)

    async def missing() -> list[str]:
        """Returns why nothing is heard of the run, if somebody has to act; each reason once."""
        nonlocal is_told
        if (await runs.find(run.name)).given is None:
            return await untaken.new_lines()
        was_told, is_told = is_told, True
        return [] if was_told else [NOT_TAKEN]

    asked_at = clock()
    while True:
        try:
            part = await runs.log_part(run.name, {}, offset=offset, wait_seconds=wait)
            is_due = not part.content or clock() - asked_at >= UNTAKEN_SECONDS
            if is_due and not part.over:
                for line in await missing():
                    page.line(line)
                asked_at = clock()
        except Unavailable as error:
            if not again:
                page.line(f"{error}; trying again")
            again = min(AGAIN_SECONDS_MAX, again * 2 or 0.5)
            await asyncio.sleep(again)
            continue
        wait = SILENT_SECONDS if part.content else WAIT_SECONDS
        again, offset = 0.0, part.next_offset
        text = rest + decoder.decode(part.content)
        whole, newline, rest = text.rpartition("\n")
        page.log(whole + newline)
        if page.telling.has_stalled:
            with suppress(Unavailable):  # then after the next lines, or at the end
                page.stalls(await runs.show(run.name))
        if part.over:
            page.log(rest)
            return


# ---- what is seen ----


class FarPage(RunPage):
    """Shows a run at a server: the lines of its log that matter, and its end."""

    def __init__(self, run: RunView, *, is_new: bool) -> None:
        super().__init__(run, is_new=is_new)
        self.telling = LogTelling()

    def begins(self, how: Following) -> None:
        verb = "starts" if self._is_new else "is followed"
        self.option = how.option
        self.line(f"{self._run.name} {verb} at {how.server}; Ctrl-C leaves it running")

    def leaves(self) -> None:
        name = quote(self._run.name)
        self.line(f"{self._run.name} continues; follow it again: tidewheel run {name}")
        self._note(f"stop it: tidewheel stop {name}")

    def log(self, text: str) -> None:
        """Prints the lines of the log that matter; `tidewheel log` prints all."""
        for line in self.telling.lines(safe_lines(text)):
            print_line(self._reached(line))

    def stalls(self, shown: dict[str, object]) -> None:
        """Tells why the run does not go on by itself, and what would help."""
        self.telling.has_stalled = False
        self._stall_option = "" if self.telling.stall_waits else " --stall-timeout 1h"
        from tidewheel.cli.pages.format import cause_lines

        self._causes = list(cause_lines(shown))
        stall: Any = shown["stall"]
        waits, until = self.telling.stall_waits, stall and stall["until"]
        if waits:
            at = None if until is None else datetime.fromisoformat(until).timestamp()
            waits = stall_words(waits, at)
        self.tell_stall("stalled", waits)


class FarJsonPage(JsonPage, FarPage):
    """Shows a run at a server as one JSON object per line."""

    def log(self, text: str) -> None:
        for line in text.splitlines():
            self._tell({"event": "log", "text": line})


# ---- the lines of its log that a person is told: begins, ends, and trouble ----

# `2030-01-01T00:00:00Z INFO - [1/foo/01:submitted] => running`
_LINE = re.compile(r"\S+T(?P<time>[\d:]+)Z (?P<level>[A-Z]+) - (?P<text>.*)")
# A task: its point, which stages have not, and its name.
_ID = r"(?P<id>(?:[^/\]]+/(?!\d\d+[:(\]]))?[^/(:\]]+)"
_STEP = re.compile(rf"\[{_ID}[^\]]*?:(?P<before>[a-z-]+)[^\]]*\] => (?P<state>\S.*)")
_REASON = re.compile(rf"\[{_ID}/\d+\] (?P<why>.*)")
_RETRY = re.compile(r"(?P<id>[^\s\[]+) (submit-)?failed: retry \d+ of \d+")
_OF_TASK = re.compile(r"[^\s\[/]+/\S+ ")  # a sentence that begins with a task
_KILLED = re.compile(rf".* - \[{_ID}[^\]]*\] job killed")
_KILLED_WITHIN = 2  # lines after it failed
# What another line says as well, or what is asked for when the run has stalled.
_SAID_ELSEWHERE = re.compile(
    r"\[[^\]]*\] (failed/\S+|submit-failed|job killed|- retrying in .*)"
    r"|.*, which nothing handles|stalled: .*|stalled for too long"
)
_STALLED = "Workflow stalled"
_STALL_TIMER = re.compile(r"(?P<time>P\S+) stall timer starts NOW(?P<stops_nothing>;.*)?")
_SAID = {
    "running": "started",
    "succeeded": "succeeded",
    "failed": "failed",
    "submit-failed": "not started",
    "expired": "expired",
}
_FAILURES = ("failed", "submit-failed")
_TROUBLE = ("WARNING", "ERROR", "CRITICAL")


class LogTelling:
    """Chooses and rewords the lines of a run's log that people are told.

    It remembers why a job failed until the log says that it did.
    """

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}
        self.has_stalled = False  # since somebody last looked
        self.stall_waits = ""  # how long it waits for somebody then

    def lines(self, text: str) -> Iterator[str]:
        """Yields what people are told for each line that matters; a line of another format
        stays as it is."""
        found = text.splitlines()
        for number, line in enumerate(found):
            of_log = _LINE.fullmatch(line)
            if of_log is None:
                yield line
                continue
            following = found[number + 1 : number + 1 + _KILLED_WITHIN]
            told = self._told(of_log["level"], of_log["text"], following)
            if told:
                yield f"{of_log['time']} {told}"

    def _told(self, level: str, text: str, following: list[str]) -> str:
        step = _STEP.fullmatch(text)
        if step is None:
            return self._trouble(level, text) if level in _TROUBLE else ""
        task, state = step["id"], step["state"].partition("(")[0]
        word = _SAID.get(state)
        if word is None or state == step["before"]:  # between two, or only held or released
            return ""
        because = self._because(task) if state in _FAILURES else ""
        killed = (_KILLED.fullmatch(one) for one in following)
        if state == "failed" and any(found and found["id"] == task for found in killed):
            word = "killed"
        return f"{task} {word}{because}"

    def _because(self, task: str) -> str:
        reason = self._reasons.pop(task, "")
        return f": {reason}" if reason else ""

    def _trouble(self, level: str, text: str) -> str:
        if reason := _REASON.fullmatch(text):
            self._reasons[reason["id"]] = reason["why"]
        elif retry := _RETRY.fullmatch(text):
            return f"{text}{self._because(retry['id'])}"
        elif text == _STALLED:
            self.has_stalled = True
        elif timer := _STALL_TIMER.fullmatch(text):
            waits = (
                "" if timer["stops_nothing"] else show_duration(parse_duration(timer["time"]))
            )
            self.stall_waits = waits
        elif not _SAID_ELSEWHERE.fullmatch(text):
            return text if _OF_TASK.match(text) else f"{level.lower()}: {text}"
        return ""
