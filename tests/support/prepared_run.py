"""A run in a real store, driven by hand: its events are said, as a scheduler would hear them.

Every event is stepped through the core and written as one batch. Jobs are tasks of the store
that somebody leases and ends. `answering` obeys commands as they come, in a thread.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from tests.support.command_line import CommandLine
from tidewheel.client import AsyncClient
from tidewheel.core.graph.findings import Findings
from tidewheel.core.operator.command_events import answer_of, events_of
from tidewheel.core.operator.definition import NewRun, RunOptions, StoredDefinition
from tidewheel.core.operator.requests import (
    CommandAnswer,
    CommandGiven,
    RunBatch,
    RunClaim,
    StoredBroadcast,
)
from tidewheel.core.operator.verbs import read_command
from tidewheel.core.queue.task import Instant, NewTask, TaskId
from tidewheel.core.sched import events
from tidewheel.core.sched.events import Effect, Event, JobEnd, Submit
from tidewheel.core.sched.step import new_pool, step
from tidewheel.errors import Refused
from tidewheel.formats.flow_cylc.workflow import load_workflow
from tidewheel.services.definitions.snapshot import capture, load_options
from tidewheel.services.paths import take_folder
from tidewheel.wiring.machine import this_process

NOW = Instant(1_900_000_000.0)
LEASE_SECONDS = 600.0
LOOK_SECONDS = 0.02
ANSWERS_SECONDS_MAX = 110.0

Respond = Callable[[AsyncClient, Sequence[CommandGiven]], Awaitable[None]]

FLOW = """
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 3
    [[graph]]
        P1 = \"\"\"
            prep => model_a & model_b => post
            model_a:fail => mail
            post[-P1] => prep
        \"\"\"
[runtime]
    [[MODELS]]
    [[prep]]
        [[[meta]]]
            title = Get everything ready
        [[[outputs]]]
            half = half way
    [[model_a, model_b]]
        inherit = MODELS
    [[post, mail]]
"""


class PreparedRun:
    """A run of a workflow; `name` is that of its folder."""

    now = NOW

    def __init__(
        self,
        tidewheel: CommandLine,
        flow: str = FLOW,
        workflow: str = "forecast",
        sees: tuple[str, ...] | None = None,
    ) -> None:
        self.tidewheel = tidewheel
        self.folder = tidewheel.folder / workflow
        self.folder.mkdir(exist_ok=True)
        (self.folder / "flow.cylc").write_text(flow)
        options = RunOptions(now=NOW)
        findings = Findings()
        loaded = load_workflow(self.folder, load_options(options), findings)
        assert loaded.graph is not None, [str(one) for one in findings.sorted()]
        self.graph = loaded.graph
        self.pool = new_pool(self.graph)
        self.commands: dict[str, str] = {}  # of jobs, by name; else `true`
        self._changes: list[object] = []
        definition = capture(loaded, self.folder).definition

        async def create(client: AsyncClient) -> None:
            store = client.store
            await store.save_definition(definition)
            new = NewRun(
                workflow=definition.workflow,
                definition=definition.digest,
                options=options,
                folder=str(self.folder),
                sees=sees,
            )
            self.view = await store.create_run(new)

        self._ask(create)
        self.name = self.view.name

    # What a scheduler does.

    def starts(self) -> PreparedRun:
        """A scheduler takes it and begins."""
        self.is_claimed()
        return self.happens(events.RunStarted(NOW))

    def is_claimed(self) -> PreparedRun:
        async def claim(client: AsyncClient) -> None:
            process = this_process()
            asked = RunClaim(run=self.view.number, process=process, lease_seconds=LEASE_SECONDS)
            self.lease = await client.store.claim_run(asked)

        self._ask(claim)
        self.batch = self.lease.batch
        return self

    def happens(self, *happened: Event, ends: bool = False) -> PreparedRun:
        """One batch."""
        self._ask(lambda client: self._write(client, happened, ends=ends))
        return self

    def is_let_go(self) -> PreparedRun:
        """The scheduler ends; the run stays as it is."""
        return self.happens(ends=True)

    def broadcasts(self, *settings: StoredBroadcast) -> PreparedRun:
        self._ask(lambda client: self._write(client, (), broadcasts=settings))
        return self

    # What jobs do.

    def starts_job(self, one: str) -> PreparedRun:
        key, submit = self._job(one)
        self._ask(lambda client: self._work(client, one, None))
        return self.happens(events.OutputMade(key, submit, "started", NOW))

    def succeeds(self, *ids: str) -> PreparedRun:
        for one in ids:
            key, submit = self._job(one)
            self._ask(lambda client, one=one: self._work(client, one, JobEnd.SUCCEEDED))
            self._ends(key, submit, JobEnd.SUCCEEDED)
        return self

    def fails(self, *ids: str) -> PreparedRun:
        for one in ids:
            key, submit = self._job(one)
            self._ask(lambda client, one=one: self._work(client, one, JobEnd.FAILED))
            self._ends(key, submit, JobEnd.FAILED)
        return self

    def _ends(self, key: tuple[int, str], submit: int, how: JobEnd) -> None:
        started = events.OutputMade(key, submit, "started", NOW)
        self.happens(started, events.JobEnded(key, submit, how, NOW))

    def writes_log(self, one: str, name: str, text: str) -> None:
        """A file of the latest job of a task."""
        point, node = one.split("/")
        submit = self._job(one)[1] if self.key(one) in self.pool.tasks else 1
        folder = self.tidewheel.state / "runs" / self.name / "log" / "job" / point / node
        (folder / f"{submit:02d}").mkdir(parents=True, exist_ok=True)
        (folder / f"{submit:02d}" / name).write_text(text)
        take_folder(self.view, self.tidewheel.state)  # as the scheduler does

    def key(self, one: str) -> tuple[int, str]:
        point, name = one.split("/")
        return (self.graph.cycling.style.read(point), name)

    def stored_definition(self, digest: str) -> StoredDefinition:
        found: list[StoredDefinition] = []

        async def read(client: AsyncClient) -> None:
            found.append(await client.store.definition(digest))

        self._ask(read)
        return found[0]

    def answering(self) -> AbstractContextManager[list[str]]:
        """Commands are obeyed while the block runs; the list is what was asked."""
        return self._listening(self._answer)

    def hearing(self) -> AbstractContextManager[list[str]]:
        """The same, but every command is answered well and none is obeyed."""
        return self._listening(self._nod)

    @contextmanager
    def _listening(self, respond: Respond) -> Iterator[list[str]]:
        heard: list[str] = []
        over = threading.Event()

        async def listen(client: AsyncClient) -> None:
            async with asyncio.timeout(ANSWERS_SECONDS_MAX):
                while not over.is_set():
                    inbox = await client.store.read_inbox(self.view.number, 100)
                    given = [one for one in inbox.happenings if isinstance(one, CommandGiven)]
                    if given:
                        heard.extend(one.body for one in given)
                        await respond(client, given)
                    await asyncio.sleep(LOOK_SECONDS)

        thread = threading.Thread(target=lambda: self._ask(listen))
        thread.start()
        try:
            yield heard
        finally:
            over.set()
            thread.join()

    async def _nod(self, client: AsyncClient, given: Sequence[CommandGiven]) -> None:
        answers = [CommandAnswer(one.number) for one in given]
        consumed = [one.seq for one in given]
        await self._write(client, (), consumed=consumed, answers=answers)

    async def _answer(self, client: AsyncClient, given: Sequence[CommandGiven]) -> None:
        answers, effects = [], []
        for one in given:
            try:
                applied = events_of(self.pool, read_command(one.body), NOW)
                made: list[Effect] = []
                for event in applied.events:
                    made += self._step(event)
                said = answer_of(self.pool, applied, made)
                answers.append(CommandAnswer(one.number, json.dumps(said)))
                effects += made
            except Refused as refusal:
                answers.append(CommandAnswer(one.number, refused=str(refusal)))
        consumed = [one.seq for one in given]
        await self._write(client, (), effects=effects, consumed=consumed, answers=answers)

    async def _write(
        self,
        client: AsyncClient,
        happened: Sequence[Event],
        *,
        effects: Sequence[Effect] = (),
        ends: bool = False,
        **more: object,
    ) -> None:
        found = [*effects]
        for event in happened:
            found += self._step(event)
        self.batch += 1
        status = str(self.pool.run.status)
        await client.store.write_batch(
            self.lease,
            RunBatch(
                number=self.batch,
                at=NOW,
                status=status,
                reason=self._reason(found, status),
                changes=self._changes,
                submissions=[self._task(one) for one in found if isinstance(one, Submit)],
                ends=ends,
                **more,
            ),
        )
        self._changes = []

    def _step(self, event: Event) -> list[Effect]:
        outcome = step(self.graph, self.pool, event)
        self._changes = [*self._changes, *outcome.changes]
        return list(outcome.effects)

    def _reason(self, effects: Sequence[Effect], status: str) -> str:
        said = [one.text for one in effects if getattr(one, "event", None) == status]
        return said[-1] if said else ""

    def _task(self, one: Submit) -> NewTask:
        return NewTask(
            id=self._task_id(one.task, one.submit),
            run=self.view.number,
            queue=self.view.queue,
            command=self.commands.get(one.task[1], "true"),
        )

    def _task_id(self, key: tuple[int, str], submit: int) -> TaskId:
        return TaskId(f"{self.name}/{self.graph.cycling.style.text(key[0])}/{key[1]}/{submit}")

    def _job(self, one: str) -> tuple[tuple[int, str], int]:
        task = self.pool.tasks[self.key(one)]
        return task.key, task.submit

    async def _work(self, client: AsyncClient, one: str, how: JobEnd | None) -> None:
        key, submit = self._job(one)
        leased = await client.lease_by_id(self._task_id(key, submit), LEASE_SECONDS)
        await client.started(leased)
        if how is JobEnd.SUCCEEDED:
            await client.complete(leased)
        elif how is not None:
            await client.fail(leased, "the disk is full")

    def _ask(self, question) -> None:
        async def session() -> None:
            async with AsyncClient(self.tidewheel.store) as client:
                await question(client)

        self.tidewheel.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        asyncio.run(session())
