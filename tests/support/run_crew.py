"""Runs as processes of the real program, to be killed, stopped, taken over and compared."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.support.audit import audit
from tests.support.fleet import Fleet, Program
from tests.support.patience import SECONDS_MAX, eventually
from tidewheel.core.operator.views import RunView
from tidewheel.core.sched.persistence import PutMemory
from tidewheel.ports.store import Store
from tidewheel.wiring.stores import open_store

T = TypeVar("T")

# A line of the journal, as `fleet.NOTE` writes it: word, id of the submission, attempt, pid.
NOTE = (
    'printf "%s %s %s %s\\n" {word} '
    '"$CYLC_WORKFLOW_ID/$CYLC_TASK_CYCLE_POINT/$CYLC_TASK_NAME/$CYLC_TASK_SUBMIT_NUMBER" '
    '"$TIDEWHEEL_ATTEMPT" $$ >> {journal}'
)
LEASE_SECONDS = 2.0  # of a run: long enough for two busy cores, short enough to wait for
COUNT_MAX = 10_000


class RunCrew(Fleet):
    """A fleet with a workflow called `flow`."""

    def __init__(self, folder: Path, store: str | None = None) -> None:
        super().__init__(folder, store)
        self.environment["TIDEWHEEL_SCHEDULER_LEASE_SECONDS"] = str(LEASE_SECONDS)
        self.environment["TIDEWHEEL_SCHEDULER_INTERVAL_SECONDS"] = "0.2"
        self.environment["TIDEWHEEL_ADOPT_INTERVAL_SECONDS"] = "0.5"

    # ---- what is run ----

    def define(
        self, graph: str, scripts: str = "", *, root: str = "", final: int = 1, more: str = ""
    ) -> None:
        """Integer cycling from 1; every job notes its begin. `scripts` is below [runtime]."""
        folder = self.folder / "flow"
        folder.mkdir(exist_ok=True)
        note = NOTE.format(word="begin", journal=self.journal)
        lines = [
            "[scheduler]\n    allow implicit tasks = True",
            f"[scheduling]\n    cycling mode = integer\n    initial cycle point = 1\n"
            f"    final cycle point = {final}\n{more}\n    [[graph]]\n{graph}",
            f"[runtime]\n    [[root]]\n        pre-script = '''{note}'''\n{root}\n{scripts}",
        ]
        (folder / "flow.cylc").write_text("\n".join(lines))

    def run(self, *arguments: str, **environment: str) -> Program:
        """`tidewheel run` of the folder, or of the run that is named first."""
        named = bool(arguments) and not arguments[0].startswith("-")
        what = arguments if named else ("flow", *arguments)
        return self.start("run", *what, **environment)

    def scheduler(self, **environment: str) -> Program:
        return self.start("scheduler", **environment)

    def ask(self, *arguments: str) -> tuple[int, str]:
        """A command to its end: exit status and what it said."""
        program = self.start(*arguments)
        return ended(program), program.log

    # ---- what has become of it ----

    def look(self, question: Callable[[Store], Awaitable[T]]) -> T:
        async def main() -> T:
            store = open_store(self.store)
            try:
                return await question(store)
            finally:
                await store.close()

        return asyncio.run(main())

    def view(self, name: str = "flow/run1") -> RunView:
        return self.look(lambda store: store.find_run(name))

    def final_state(self, name: str = "flow/run1") -> dict[str, Any]:
        """What must be the same however often a run was killed (P16)."""

        async def read(store: Store) -> dict[str, Any]:
            run = await store.find_run(name)
            stored = await store.read_run(run.number)
            memory = [one for one in stored.changes if isinstance(one, PutMemory)]
            memory += await store.forgotten(run.number, COUNT_MAX)
            submissions = await store.submissions(run.number, count=COUNT_MAX)
            ids = [one.task_id for one in submissions]
            assert len(ids) == len(set(ids)), "submit numbers are used once"
            return {
                "status": run.status,
                "submissions": sorted((one.task_id, one.status) for one in submissions),
                "memory": {one.key: one for one in memory},
                "timers": sorted(map(str, stored.timers)),
            }

        return self.look(read)

    def judge(self) -> dict[str, int]:
        """Every task was begun once, or its history says why not; the store is sound (T16)."""
        with self.client() as client:
            ids = [task_id for task_id, _ in self.final_state()["submissions"]]
            return dict(audit(client, self, ids))


@contextmanager
def run_crew(folder: Path, store: str | None = None) -> Iterator[RunCrew]:
    """A crew for the length of a `with` block."""
    folder.mkdir(parents=True, exist_ok=True)
    crew = RunCrew(folder, store)
    try:
        yield crew
    finally:
        crew.end()


def ended(program: Program, seconds_max: float = SECONDS_MAX) -> int:
    """Its exit status, once it has ended by itself."""
    eventually(lambda: not program.runs, lambda: f"its end: {program.log}", seconds_max)
    status: int = program.process.returncode
    return status


def was_killed(program: Program) -> bool:
    """Whether it died as by kill -9."""
    return ended(program) == -signal.SIGKILL
