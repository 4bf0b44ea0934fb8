"""The run of a joint simulation: a random workflow, and what each of its jobs does.

How a job ends is decided by its task and submit number alone, so that it is the same whoever
executes it, however often, in whatever order: the oracle can tell what the run must come to.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from tests.kit import machines
from tests.kit.machines import Script
from tests.sim.sched_oracle import FAILED, SUBMIT_FAILED, SUCCEEDED, Key, Try
from tests.sim.sched_oracle_flow import flow_text
from tests.sim.sched_oracle_graphs import Case
from tests.sim.sched_oracle_lists import draw_with_lists
from tidewheel.core.operator.definition import RunOptions, StoredDefinition
from tidewheel.core.queue.requests import Claimed, End

ENDS: dict[str, End] = {
    SUCCEEDED: machines.SUCCEEDED,
    FAILED: machines.FAILED,
    SUBMIT_FAILED: machines.FAILED,
}
RETRY_DELAYS = ("PT1S", "PT8S", "PT30S")
SHORTEST = 0.0005  # of the longest job


@dataclass(frozen=True, slots=True)
class Submission:
    """What the id of a task of a run says."""

    key: Key
    submit: int


def read_id(task_id: str) -> Submission:
    point, name, submit = task_id.split("/")[-3:]
    return Submission((int(point), name), int(submit))


class Flow:
    """A workflow of a seed, with the jobs of its run."""

    def __init__(self, seed: int, chance: Random) -> None:
        self.case: Case = draw_with_lists(seed)
        self._seed = seed
        self._longest = chance.choice((1.0, 10.0, 40.0))
        self._obeys = chance.choice((True, True, False))
        delay = chance.choice(RETRY_DELAYS)
        text = flow_text(self.case.graph).replace("PT1S", delay)
        self.definition = StoredDefinition(digest=f"flow {seed}", workflow="flow", text=text)
        start = self.case.graph.start
        self.options = RunOptions(
            start="" if start == 1 else str(start),
            stall_timeout_seconds=chance.choice((4.0, 10.0, 25.0)),
        )

    def job(self, key: Key, submit: int) -> Try:
        """Beyond what was drawn a job succeeds: an attempt that lapsed out is tried again."""
        tries = self.case.outcomes[key]
        return tries[submit - 1] if submit <= len(tries) else Try(SUCCEEDED)

    def script(self, task: Claimed) -> Script:
        """What a machine does for it."""
        one = read_id(task.id)
        job = self.job(one.key, one.submit)
        chance = Random(f"{self._seed} {task.id}")
        seconds = self._longest * SHORTEST ** chance.random()
        times = sorted(chance.random() * seconds for _ in job.customs)
        said = zip(times, job.customs, strict=True)
        return Script(
            seconds=seconds,
            end=self._with_list(one.key, ENDS[job.end]),
            obeys=self._obeys,
            # An output is named, or its message is said.
            words=tuple((at, one, chance.choice((None, one))) for at, one in said),
            start_fails=job.end == SUBMIT_FAILED,
        )

    def _with_list(self, key: Key, end: End) -> End:
        part = self.case.graph.list
        if part is None or key[1] != part.source or end is not machines.SUCCEEDED:
            return end
        return replace(end, values=json.dumps({"l": [*range(part.sizes[key[0]])]}))


Scripts = Callable[[Claimed], Script]
