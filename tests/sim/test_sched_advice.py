"""A run that went wrong is repaired by what `why` advises, in random workflows.

Jobs fail at random, then everything is mended: from there on every job succeeds and makes all
its outputs. Whoever follows the advice for what keeps the run, or for what is lost, gets
somewhere: the advice does not come back in the same words, and the run completes. A failure
prints the command that shows it again.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.kit.scenario import Scenario, compile_flow
from tests.sim.campaigns import campaigns_of
from tests.sim.sched_oracle_flow import flow_text
from tests.sim.sched_oracle_lists import draw_with_lists, size_text
from tests.sim.seeds import CAMPAIGNS
from tidewheel.core.operator.command_events import events_of
from tidewheel.core.operator.verbs import Set, Trigger
from tidewheel.core.sched.explain import Reason, why
from tidewheel.core.sched.spawn import RETRY
from tidewheel.core.sched.task_state import Key

ADVICE = CAMPAIGNS["advice"]
FAILING = 0.3  # of all jobs, before everything is mended
ROUNDS_MAX = 60
JOBS_MAX = 600


class Repair:
    """A run with failures, and somebody who does what is advised."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        graph = draw_with_lists(seed).graph
        # A suicide arrow may take away again what was mended; the oracle judges those.
        graph = replace(graph, arrows=tuple(one for one in graph.arrows if not one.suicide))
        self.text = flow_text(graph)
        self.customs, self.list = graph.customs, graph.list
        self.run = Scenario(compile_flow(self.text), start=graph.start)
        self.said: list[str] = []

    def plays(self) -> None:
        self.ends_all_jobs(failing=FAILING)
        followed: set[tuple[Key, str, str]] = set()
        for _ in range(ROUNDS_MAX):
            found = self.first_advice()
            if found is None:
                break
            key, reason = found
            advice = (key, reason.text, reason.command)
            assert advice not in followed, f"advised again: {reason}"
            followed.add(advice)
            self.follows(reason.command)
            self.ends_all_jobs(failing=0.0)
        assert self.run.completed, f"{self.run.status}: {self.run.causes}, {self.run.pool}"

    def ends_all_jobs(self, failing: float) -> None:
        for _ in range(JOBS_MAX):
            self.retries()
            active = sorted(key for key, task in self.run.core.tasks.items() if task.is_active)
            if not active:
                return
            key = self.rng.choice(active)
            one = self.run.id_of(key)
            if self.rng.random() < failing:
                self.said.append(f"{one} fails")
                self.run.fails(one)
            else:
                self.said.append(f"{one} succeeds")
                self.run.makes(one, *self.customs.get(key[1], ()))
                if self.list is not None and key[1] == self.list.source:
                    self.run.makes(one, size_text(self.list.sizes[key[0]]))
                self.run.succeeds(one)
        raise AssertionError("it goes on and on")

    def retries(self) -> None:
        """Let every retry delay pass."""
        for key, task in sorted(self.run.core.tasks.items()):
            if RETRY in task.waits:
                self.run.timer(self.run.id_of(key), RETRY)

    def first_advice(self) -> tuple[Key, Reason] | None:
        """What is said of the first task that keeps the run, or that is lost."""
        keys = [self.run.key(one) for one in self.run.causes]
        lost = [one for one, kind in self.run.verdicts.items() if kind == "lost"]
        for key in (*keys, *map(self.run.key, lost)):
            for reason in why(self.run.core, key):
                if reason.command and not reason.passes:
                    return key, reason
        return None

    def follows(self, command: str) -> None:
        first = command.split(", or ", maxsplit=1)[0]
        self.said.append(f"-- {first}")
        verb, one, *rest = first.split()
        if verb == "trigger":
            flow = "new" if rest == ["--reflow"] else ""
            given = Trigger(ids=(one,), flow=flow)
        else:
            assert verb == "set", first
            options = dict(zip(rest[::2], rest[1::2], strict=True))
            before = tuple(filter(None, (options.get("--pre", ""),)))
            given = Set(ids=(one,), prerequisites=before, flow=options.get("--flow", ""))
        for event in events_of(self.run.core, given, self.run.now).events:
            self.run.happens(event)


def play(seed: int) -> None:
    repair = Repair(seed)
    try:
        repair.plays()
    except Exception as error:
        said = "\n".join((repair.text, *repair.said))
        raise AssertionError(f"{error!r}\n{said}") from error


@pytest.mark.parametrize("seed", ADVICE.begins())
def test_what_why_advises_repairs_a_run(seed):
    with campaigns_of(ADVICE) as campaigns:
        campaigns.hold(seed, ADVICE.each)
