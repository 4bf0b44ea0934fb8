"""Drives jobs that are projects, and looks at their engine once for all of them.

One coroutine drives a job: it has its parts made, and follows them from their start to their
end. The engine may go away at any time. Every step waits until it is back and is done then; a
part that the engine itself ended meanwhile makes the task go back, not fail.

``docker ps`` tells of every container at once, and ``docker events`` when it is worth asking;
a Swarm tells nothing, so it is asked every second. While the engine does not answer nobody
learns anything, so nobody draws a conclusion.

One ``docker stats`` samples the running containers of all jobs. A Swarm's containers may run on
other machines, whose engines nobody here can ask: stages on a Swarm are not sampled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from tidewheel.core.queue.requests import End, UsageSample
from tidewheel.errors import BadSetting, Refused
from tidewheel.ports.runners import JobReports
from tidewheel.quantities import parse_size
from tidewheel.runners.containers import logs, outcome
from tidewheel.runners.containers.docker_cli import CallTooSlow, Cli, EngineAway
from tidewheel.runners.containers.job_clocks import JobClocks
from tidewheel.runners.containers.project import (
    CannotCreate,
    Engine,
    Phase,
    ProjectPart,
    ProjectPlan,
)
from tidewheel.runners.containers.stage_spec import BadStage
from tidewheel.runners.job_directory import JobDirectory, write_whole
from tidewheel.runners.messages.client import SpooledMessage
from tidewheel.runners.messages.server import Speaker
from tidewheel.runners.outcome import with_values

AWAY_SECONDS_FIRST = 0.2
AWAY_SECONDS_MAX = 5.0
GATHER_SECONDS = 0.05  # one look for all that happens together
AGAIN_SECONDS = 0.2
EVENTS_REST_SECONDS = 1.0


class EnginePoller:
    """Asks the engine for all projects and shows each job its parts, while there are jobs.

    It holds what the jobs of a runner share.
    """

    def __init__(
        self,
        engine: Engine,
        message_bytes_max: int,
        leave_network: Callable[[str], Awaitable[None]],
    ) -> None:
        self.leave_network = leave_network
        self.on_trouble: Callable[[str | None], None] = lambda _: None
        self.followers: set[asyncio.Task[None]] = set()  # of the logs of all jobs
        self.engine, self.message_bytes_max = engine, message_bytes_max
        self._jobs: set[EngineJob] = set()
        self._alarm = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._resting: set[asyncio.Task[None]] = set()  # cancelled, and not yet over

    def add(self, job: EngineJob) -> None:
        self._jobs.add(job)
        self.poke()
        if not self._tasks:
            self._tasks = {asyncio.create_task(self._look_on())}
            arguments = self.engine.events_command
            if arguments is not None:
                self._tasks.add(asyncio.create_task(self._listen(arguments)))

    def remove(self, job: EngineJob) -> None:
        self._jobs.discard(job)
        if not self._jobs:
            self._rest()

    def poke(self) -> None:
        """Begins the next look at the engine early, because something has happened."""
        self._alarm.set()

    async def stop(self) -> None:
        """Stops looking, and waits until a look that is under way has ended."""
        self._rest()
        if self._resting:
            await asyncio.wait(set(self._resting))

    def _rest(self) -> None:
        for task in self._tasks:
            task.cancel()
            self._resting.add(task)
            task.add_done_callback(self._resting.discard)
        self._tasks = set()

    async def _look_on(self) -> None:
        is_away = False
        away_seconds, rest_seconds = AWAY_SECONDS_FIRST, AGAIN_SECONDS
        while True:
            self._alarm.clear()
            wanted = list(self._jobs)
            try:
                sightings = await self.engine.look()
            except (EngineAway, ValueError, KeyError) as away:  # nothing, or nonsense
                self.on_trouble(str(away))
                is_away = True
                for job in wanted:
                    job.miss()
                await asyncio.sleep(away_seconds)
                away_seconds = min(away_seconds * 2, AWAY_SECONDS_MAX)
                continue
            if is_away:
                self.on_trouble(None)
                is_away = False
            away_seconds = AWAY_SECONDS_FIRST
            for job in wanted:
                sighting = sightings.get(job.project)
                job.see(() if sighting is None else sighting.parts)
            rest_seconds = await self._rest_until_alarmed(rest_seconds)

    async def _rest_until_alarmed(self, rest_seconds: float) -> float:
        """Rests until the time is over or something happens, and returns how long to rest next.

        After something happened the rest is short: an engine tells of an end before it shows
        it.
        """
        try:
            async with asyncio.timeout(rest_seconds):
                await self._alarm.wait()
        except TimeoutError:
            return self.engine.look_seconds
        await asyncio.sleep(GATHER_SECONDS)
        return min(AGAIN_SECONDS, self.engine.look_seconds)

    async def _listen(self, arguments: tuple[str, ...]) -> None:
        """Begins a look early whenever the engine tells of an event, for as long as it runs.
        Without events the regular looks suffice."""
        while True:
            async with self.engine.cli.following(*arguments) as process:
                assert process.stdout is not None
                while await process.stdout.read(4096):
                    self.poke()
            for job in self._jobs:
                job.miss()
            self.poke()
            await asyncio.sleep(EVENTS_REST_SECONDS)


CONTAINERS_MAX = 500  # that are asked for at once; of more, the first ones


class ContainerSampler:
    """Samples the containers of all jobs while there are any.

    It does so in a task of its own, because docker measures for a second.
    """

    def __init__(
        self, cli: Cli, jobs: Callable[[], Collection[EngineJob]], interval_seconds: float
    ) -> None:
        self._cli, self._jobs = cli, jobs
        self._interval_seconds = interval_seconds
        self._sampling: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Begins to sample, unless that goes on already, because there is a job."""
        if self._sampling is None or self._sampling.done():
            self._sampling = asyncio.create_task(self._sample_on(), name="container usage")

    async def stop(self) -> None:
        """Stops sampling, and waits until a sample that is under way has ended."""
        if self._sampling is not None:
            self._sampling.cancel()
            await asyncio.wait({self._sampling})

    async def _sample_on(self) -> None:
        while self._jobs():
            await asyncio.sleep(self._interval_seconds)
            await self.run_once()

    async def run_once(self) -> None:
        """Samples all running containers, and reports to each job what its own use together."""
        wanted = [(job, job.running) for job in self._jobs()]
        ids = [one for _, running in wanted for one in running][:CONTAINERS_MAX]
        used = await self._ask(ids) if ids else {}
        for job, running in wanted:
            if parts := [used[one] for one in running if one in used]:
                cpu_percent = round(sum(part.cpu_percent or 0.0 for part in parts), 1)
                memory_bytes = sum(part.memory_bytes or 0 for part in parts)
                used_by_job = UsageSample(memory_bytes=memory_bytes, cpu_percent=cpu_percent)
                job.reports.usage(used_by_job)

    async def _ask(self, ids: Sequence[str]) -> dict[str, UsageSample]:
        """Returns what each container uses, by id; empty if one of them is gone. The next
        sample leaves that one out."""
        stats, fields = ("stats", "--no-stream", "--no-trunc"), (".ID", ".CPUPerc", ".MemUsage")
        try:
            rows = await self._cli.inspect(stats, fields, ids)
            return {id_: _sample(cpu, memory) for id_, cpu, memory in rows}
        except (EngineAway, BadSetting, ValueError):
            return {}


def _sample(cpu: str, memory: str) -> UsageSample:
    """Returns the sample of ``12.34%`` and ``1.5MiB / 7.6GiB``. Raises ValueError or BadSetting
    for ``--``, which docker prints of an ended container."""
    return UsageSample(
        memory_bytes=parse_size(memory.partition("/")[0]),
        cpu_percent=round(float(cpu.rstrip("%")), 1),
    )


AWAY_REST_SECONDS = 1.0
END_NAME = "job.end"
LOOKS_UNTIL_SURE = 2


class EngineJob:
    """Drives a new or adopted project; it is used from the worker's loop alone."""

    def __init__(
        self,
        watch: EnginePoller,
        plan: ProjectPlan,
        clocks: JobClocks,
        reports: JobReports,
        *,
        grace_seconds: float,
        create: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Begins to drive a job; ``create`` makes its parts, None: they are there already."""
        self._engine, self._watch = watch.engine, watch
        self._plan = plan
        directory = clocks.directory
        self._files = JobDirectory(directory)
        self.reports = reports
        self._grace_seconds = grace_seconds  # for the others, when one part has failed
        self._speaker = Speaker(
            directory=directory, reports=reports, message_bytes_max=watch.message_bytes_max
        )
        self._speaker.hear_spool()
        self._logs = logs.ProjectLogs(
            watch.engine, self._files, plan.prefix, watch.followers, self._on_said
        )
        self._parts: tuple[ProjectPart, ...] = ()
        self._views = 0  # how often the engine has shown them
        self._values = logs.SaidValues()
        self._started: set[str] = set()
        self._sure_at = 0  # the first view that began after what was done last
        self._news = asyncio.Event()
        self._stop_grace_seconds: float | None = None
        self._stops = 0  # under way
        # An adopter of a job does not know what the engine did while nobody looked.
        self._was_away = create is None
        self._create = create
        self.is_ending = False
        self._creating: asyncio.Task[None] | None = None
        self._clocks = clocks
        if clocks.has_begun:
            reports.started()
        self.over: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        # Cancelled where the worker leaves and the job runs on.
        self.driving = asyncio.create_task(self._drive())

    @property
    def project(self) -> str:
        return self._plan.project

    async def wait(self) -> End:
        return await asyncio.shield(self.over)

    async def begun(self) -> float:
        return await self._clocks.begun()

    async def stop(self, grace_seconds: float) -> None:
        """Asks all parts to end, and kills them after the grace."""
        if self.over.done():
            return
        self._stop_grace_seconds = grace_seconds
        if self._creating is not None:
            self._creating.cancel()
            return
        self._stops += 1
        try:
            if not self._engine.logs_end:
                await self._patiently(self._logs.complete)
            await self._patiently(lambda: self._engine.stop(self.project, grace_seconds))
        finally:
            self._stops -= 1
            self._sure_at = self._views + LOOKS_UNTIL_SURE
            self._watch.poke()

    def see(self, parts: tuple[ProjectPart, ...]) -> None:
        """Takes the parts that the engine shows now, and wakes what judges them."""
        self._parts = parts
        self._views += 1
        if self._create is not None:
            self._note_begin(parts)
        self._logs.follow(parts)
        self._news.set()

    def miss(self) -> None:
        """Notes that the engine was away, and may have ended parts itself meanwhile."""
        self._was_away = True

    @property
    def running(self) -> tuple[str, ...]:
        """Returns the ids of the parts that run."""
        return tuple(part.id for part in self._parts if part.phase is Phase.RUNNING)

    async def _drive(self) -> None:
        try:
            if self._create is not None and (end := await self._prepared(self._create)):
                self.over.set_result(end)
                return
            self._watch.add(self)
            end = await self._until_over()
            self.is_ending = True
            await self._finish(end)
        except Exception as error:  # the worker hears of it, and nobody waits for ever
            if not self.over.done():
                self.over.set_exception(error)
        finally:
            self._watch.remove(self)
            await self._logs.close()

    async def _prepared(self, create: Callable[[], Awaitable[None]]) -> End | None:
        """Has the parts made; returns how the job ended if it does not come to that."""
        making = self._creating = asyncio.ensure_future(create())
        if self._stop_grace_seconds is not None:
            making.cancel()
        try:
            await asyncio.wait({making})
        except asyncio.CancelledError:  # this worker ends
            making.cancel()
            await asyncio.wait({making})
            raise
        finally:
            self._creating = None
        try:
            await making
        except asyncio.CancelledError:
            end = outcome.failure(
                "stopped", "the stage was stopped while its containers were being created"
            )
        except CannotCreate as cannot:
            end = outcome.failure("start", str(cannot))
        except BadStage as bad:
            end = outcome.failure("refused", str(bad))
        except CallTooSlow:
            end = self._clocks.too_slow("the containers of the stage were not created")
        except EngineAway as away:
            self._watch.on_trouble(away_words(away))
            return outcome.GIVEN_BACK  # what there is of it is removed as a leftover
        else:
            for note in self._plan.notes:
                self._say(note, note)
            return None
        await self._remove()
        return end

    async def _until_over(self) -> End:
        while True:
            await self._news.wait()
            self._news.clear()
            if self._create is None and not self._clocks.has_begun:
                await self._learn_begin()
            is_asked = self._stop_grace_seconds is not None
            if not is_asked and (end := self._clocks.judge_preparation(self._parts)):
                return end
            if self._stops or self._views < self._sure_at:
                continue  # what is seen now may be older than what was done
            verdict = self._judge(self._parts)
            match verdict:
                case outcome.Over(end):
                    return end
                case outcome.Startable(parts):
                    self._was_away = False
                    await self._start(parts)
                case outcome.KeepWaiting(reasons):
                    self._was_away = False
                    for reason in reasons:
                        self._say(f"waiting: {reason}", reason)
                    if self._stop_grace_seconds is not None:  # started while it was stopped
                        await self.stop(self._stop_grace_seconds)

    async def _learn_begin(self) -> None:
        """Notes since when an adopted job runs, which may have begun while nobody looked."""
        begun = [part for part in self._parts if part.has_begun]
        if begun:
            with suppress(EngineAway, ValueError):
                self._note_begin(self._parts, await self._engine.run_seconds(begun))

    def _note_begin(self, parts: tuple[ProjectPart, ...], run_seconds: float = 0.0) -> None:
        if not self._clocks.has_begun and any(part.has_begun for part in parts):
            self._clocks.begin(run_seconds)
            self.reports.started()

    async def _start(self, parts: tuple[ProjectPart, ...]) -> None:
        """Starts parts, none of them twice, and ignores looks that may be older than the start.

        One look may have been under way when the start was over; the next was not. If a part
        is then still in the phase CREATED, the engine went away in that moment, and nobody can
        know whether it was started.
        """
        self._started |= {part.id for part in parts}
        with suppress(EngineAway):
            await self._engine.start(parts)
        self._sure_at = self._views + LOOKS_UNTIL_SURE
        self._watch.poke()

    def _judge(self, parts: tuple[ProjectPart, ...]) -> outcome.Verdict:
        seen = outcome.ProjectSeen(
            parts=parts,
            plan=self._plan,
            stop_grace_seconds=self._stop_grace_seconds,
            engine_was_away=self._was_away,
            started=frozenset(self._started),
        )
        return outcome.judge(seen, self._logs.last_line)

    async def _finish(self, end: End) -> None:
        """Stops and removes the project, its logs complete; only then tells how it ended."""
        parts = self._parts
        if self._engine.logs_end and any(part.phase is Phase.RUNNING for part in parts):
            # One has failed: the others have their grace, and their last words.
            grace = self._grace_seconds
            await self._patiently(lambda: self._engine.stop(self.project, grace))
        await self._patiently(self._logs.complete)
        verdict = self._judge(parts)  # again: the last words are known by now
        end = verdict.end if isinstance(verdict, outcome.Over) else end
        end = with_values(end, lambda: self._values.gather(self._files.path))
        with suppress(OSError):  # for an adopter, should this worker die too early
            content = msgspec.json.encode(end)
            write_whole(self._files.path / END_NAME, content, mode=0o600)
        await self._remove()
        if not self.over.done():
            self.over.set_result(end)

    async def _remove(self) -> None:
        """Removes the project, and the network of its run if no other stage is in it."""
        await self._patiently(lambda: self._engine.remove(self.project))
        if network := self._plan.network:
            await self._patiently(lambda: self._watch.leave_network(network))

    async def _patiently(self, step: Callable[[], Awaitable[None]]) -> None:
        """Does a step, again and again as long as the engine is away."""
        while True:
            try:
                await step()
            except EngineAway:
                self._was_away = True
                await asyncio.sleep(AWAY_REST_SECONDS)
            else:
                return

    def _on_said(self, service: str, line: logs.LogLine, text: str) -> None:
        said = logs.read_said(text)
        if said is None:
            return
        self._values.hear(said.values, text)
        if said.progress is not None:
            self.reports.progress(said.progress)
        if said.text or said.output is not None:
            # The digest tells two lines of one moment apart.
            digest = sha256(text.encode(errors="replace")).hexdigest()[:16]
            key = f"{service} {line.at.decode(errors='replace')} {digest}"
            self._say(said.text, key, said.output)

    def _say(self, text: str, key: str, output: str | None = None) -> None:
        with suppress(Refused):  # too long, or too many
            self._speaker.hear(SpooledMessage(key=key, text=text, output=output))


def away_words(away: EngineAway) -> str:
    """Returns what a worker is told of an engine that does not answer."""
    words = str(away).rstrip(".?")  # docker asks whether its daemon is running
    return f"{words}. Until this is fixed, stages go back to their queue"


def read_end(directory: Path) -> End | None:
    """Returns how a job ended whose worker died before it told; None if nothing was kept."""
    try:
        kept = msgspec.json.decode((directory / END_NAME).read_bytes())
        if isinstance(kept["error"], list):  # a worker of an earlier version wrote it
            kept["error"] = dict(
                zip(("code", "description", "args"), kept["error"], strict=True)
            )
        return msgspec.convert(kept, End)
    except (OSError, ValueError, KeyError, TypeError):
        return None
