"""Implements the port ``Runner`` for tasks that are stages of containers, on either engine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from tidewheel.config import (
    CONTAINERS,
    EVERYWHERE,
    PREPARE_SECONDS_DEFAULT,
    read_allowances,
)
from tidewheel.core.queue.requests import Claimed
from tidewheel.core.queue.submission import MESSAGE_BYTES_MAX
from tidewheel.errors import RunnerUnable
from tidewheel.ports.runners import Assignment, Job, JobReports, Leftover
from tidewheel.runners.containers.block_network import MAKE_TRIES, BlockNetworks, is_network
from tidewheel.runners.containers.compose_build import (
    EXECUTED,
    FILES,
    judge_mounts,
    prepare,
    read_plan,
)
from tidewheel.runners.containers.docker_cli import Cli, EngineAway
from tidewheel.runners.containers.engines import ComposeEngine, SwarmEngine
from tidewheel.runners.containers.job import (
    ContainerSampler,
    EngineJob,
    EnginePoller,
    away_words,
    read_end,
)
from tidewheel.runners.containers.job_clocks import JobClocks, read_clocks
from tidewheel.runners.containers.outcome import failure
from tidewheel.runners.containers.project import CannotCreate, Engine, Phase, ProjectPlan
from tidewheel.runners.containers.stage_spec import BadStage, runner_named
from tidewheel.runners.job_directory import (
    make_private_directory,
    prepare_run_folders,
    tidy_run_folders,
)
from tidewheel.runners.messages.server import Speaker
from tidewheel.runners.outcome import EndedJob, not_started
from tidewheel.runners.registry import RunnerParts

USAGE_INTERVAL_SECONDS = 5.0


class EngineRunner:
    """Runs stages on a container engine; a worker has one such runner for all of its jobs."""

    def __init__(  # noqa: PLR0913 - each by name
        self,
        engine: Engine,
        *,
        called: Sequence[str] = (),  # names by which tasks ask for it; else its engine's
        allowed: Sequence[str] = (),
        home: Path | None = None,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
        usage_interval_seconds: float = USAGE_INTERVAL_SECONDS,
        prepare_seconds: float = PREPARE_SECONDS_DEFAULT,
    ) -> None:
        self._engine = engine
        self._called = frozenset(called or (engine.name,))
        self._allowances = read_allowances(allowed)
        self._prepare_seconds = prepare_seconds
        self._home = home  # None: mounts are judged by links in the folders of runs alone
        self._networks = BlockNetworks(
            engine.cli,
            engine.name,
            engine.network_driver,
            is_swarm=not engine.parts_are_here,
        )
        self._watch = EnginePoller(engine, message_bytes_max, self._networks.leave)
        self._jobs: set[EngineJob] = set()
        self._sampler: ContainerSampler | None = None
        if engine.parts_are_here:
            self._sampler = ContainerSampler(
                engine.cli, lambda: list(self._jobs), usage_interval_seconds
            )

    def accepts(self, task: Claimed) -> bool:
        """Says whether the task's spec names this runner."""
        return task.handler is None and runner_named(task.spec) in self._called

    async def start(self, assignment: Assignment, reports: JobReports) -> Job:
        """Begins to make a project; a task that may not run becomes a job that has failed."""
        queues = (EVERYWHERE, assignment.task.queue)
        allowed = frozenset().union(*(self._allowances.get(one, ()) for one in queues))
        if assignment.task.fence_kill:
            words = "its queue fences jobs, and containers do not die with their worker"
            return EndedJob(failure("refused", f"{words}; use a queue without a fence"))
        try:
            make_private_directory(assignment.directory)
            prepare_run_folders(assignment)
            plan = await prepare(self._engine, assignment, allowed, self._home)
            await self._remove_earlier(plan)
        except BadStage as bad:
            return EndedJob(failure("refused", str(bad)))
        except EngineAway as away:
            raise RunnerUnable(away_words(away)) from away
        except OSError as error:
            return not_started(error, assignment.directory)
        judged = "bind-mounts" not in allowed
        create = partial(self._create, plan, assignment, judged=judged)
        return self._drive(plan, assignment, reports, create)

    async def adopt(self, assignment: Assignment, reports: JobReports) -> Job | None:
        """Drives the project of a worker that died, and returns its job.

        It returns None if there is no such project, or if it has never begun and was removed.
        """
        plan = read_plan(assignment.directory)
        if plan is None or plan.tags.runner != self._engine.name:
            return None
        if (end := read_end(assignment.directory)) is not None:
            with suppress(EngineAway):  # then it is removed as a leftover
                await self._engine.remove(plan.project)
            if read_clocks(assignment.directory).begun_at is not None:
                reports.started()
            # The messages again, from the first; the worker drops those that the store has.
            most = self._watch.message_bytes_max
            directory = assignment.directory
            Speaker(directory=directory, reports=reports, message_bytes_max=most).hear_spool()
            return EndedJob(end)
        with suppress(EngineAway):  # then nothing is known, and the job will see
            sighting = (await self._engine.look()).get(plan.project)
            if sighting is None or all(part.phase is Phase.CREATED for part in sighting.parts):
                await self._engine.remove(plan.project)
                return None
        return self._drive(plan, assignment, reports)

    async def leftovers(self, store: str) -> list[Leftover]:
        """Returns every attempt of this store of which the engine holds something."""
        try:
            there = [one.tags for one in (await self._engine.look()).values()]
            there += await self._engine.remains()
            networks = await self._networks.unused(store)
        except EngineAway:
            return []
        own = {tags.project: tags for tags in there if tags.store == store and tags.project}
        return networks + [
            Leftover(name=tags.project, task_id=tags.task_id, attempt=tags.attempt)
            for tags in own.values()
        ]

    async def remove(self, leftover: Leftover) -> None:
        """Removes what is left of an attempt whose lease is over."""
        if is_network(leftover.name):
            await self._networks.leave(leftover.name)
        else:
            await self._engine.remove(leftover.name)

    def tell_trouble_to(self, hear: Callable[[str | None], None]) -> None:
        """Sets the function that is told that the engine is away, or back (None)."""
        self._watch.on_trouble = hear

    def stop(self) -> None:
        """Stops driving jobs, which run on."""
        for job in self._jobs:
            job.driving.cancel()

    async def stopped(self) -> None:
        """Waits until nothing listens to the engine any more."""
        for job in list(self._jobs):
            await asyncio.wait({job.driving})
        await self._watch.stop()
        if self._sampler is not None:
            await self._sampler.stop()

    async def _create(self, plan: ProjectPlan, assignment: Assignment, *, judged: bool) -> None:
        """Has the engine make a project, in the network of its run if it is to be in that."""
        if not plan.network:
            await self._create_once(plan, assignment, judged=judged)
            return
        with self._networks.wanted(plan.network):
            for tries_left in reversed(range(MAKE_TRIES)):
                await self._networks.make(plan.network, plan.tags)
                try:
                    await self._create_once(plan, assignment, judged=judged)
                except CannotCreate:
                    # Unless that is because another worker has just removed the network.
                    if not tries_left or await self._networks.is_there(plan.network):
                        raise
                    continue
                if await self._networks.is_there(plan.network):
                    return
                await self._engine.remove(plan.project)
        raise CannotCreate(
            "the network of the run was removed while the stage's containers were being created"
        )

    async def _create_once(
        self, plan: ProjectPlan, assignment: Assignment, *, judged: bool
    ) -> None:
        """Makes a project once, after a last look at its mounts if they are judged."""
        if judged:
            judge_mounts(self._engine, assignment, plan, self._home)
        folder, seconds_max = assignment.directory, self._prepare_seconds
        try:
            await self._engine.create(plan, folder / EXECUTED, folder / FILES, seconds_max)
        except CannotCreate:
            await self._engine.remove(plan.project)
            raise

    async def _remove_earlier(self, plan: ProjectPlan) -> None:
        """Removes what attempts whose leases ran out have left: two must not run at once."""
        own = plan.tags
        for sighting in (await self._engine.look()).values():
            other = sighting.tags
            same_task = (other.store, other.task_id) == (own.store, own.task_id)
            if same_task and other.attempt <= own.attempt:
                await self._engine.remove(other.project)

    def _drive(
        self,
        plan: ProjectPlan,
        assignment: Assignment,
        reports: JobReports,
        create: Callable[[], Awaitable[None]] | None = None,
    ) -> EngineJob:
        job = EngineJob(
            self._watch,
            plan,
            JobClocks(assignment.directory, self._prepare_seconds),
            reports,
            grace_seconds=assignment.task.max_termination_seconds,
            create=create,
        )
        self._jobs.add(job)
        if self._sampler is not None:
            self._sampler.wake()
        job.over.add_done_callback(lambda _: self._over(job, assignment))
        return job

    def _over(self, job: EngineJob, assignment: Assignment) -> None:
        self._jobs.discard(job)
        tidy_run_folders(assignment)


def open_runner(name: str, parts: RunnerParts) -> EngineRunner:
    """Returns the runner for the engine of this name.

    Raises BadSetting if docker, or what reads compose files, is missing.
    """
    cli = Cli(parts.environ)
    cli.check_compose(name)
    # A worker with both has a Swarm for a reason.
    takes_any = name == SwarmEngine.name or SwarmEngine.name not in parts.runners
    return EngineRunner(
        ComposeEngine(cli) if name == ComposeEngine.name else SwarmEngine(cli),
        called=(name, CONTAINERS) if takes_any else (name,),
        allowed=parts.allow_compose,
        home=None if parts.home == Path() else parts.home,
        message_bytes_max=parts.message_bytes_max,
        usage_interval_seconds=parts.usage_interval_seconds,
        prepare_seconds=parts.prepare_seconds,
    )
