"""Random commands in random workflows: nothing breaks, and a restart changes nothing.

After each step `Scenario` checks the invariants and compares the pool with one that is made
again from what was written. A failure prints the
command that shows it again.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.kit.scenario import Scenario, compile_flow
from tests.kit.sched_invariants import fingerprint
from tests.sim.campaigns import campaigns_of
from tests.sim.sched_oracle import Arrow, leaves
from tests.sim.sched_oracle import Graph as Drawn
from tests.sim.sched_oracle_flow import flow_text
from tests.sim.sched_oracle_graphs import Case, has_cycle, never_there
from tests.sim.sched_oracle_lists import SIZE_MAX, draw_with_lists, size_text
from tests.sim.seeds import CAMPAIGNS
from tidewheel.core.graph.definition import element_name
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator import verbs
from tidewheel.core.operator.command_events import answer_of, events_of
from tidewheel.core.operator.run_log import RunLog
from tidewheel.core.operator.verbs import Command
from tidewheel.core.sched import events
from tidewheel.core.sched.elements import refuse_other_lists
from tidewheel.core.sched.events import SetTimer
from tidewheel.core.sched.explain import preview, why
from tidewheel.core.sched.interventions import completing
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Refused

COMMANDS = CAMPAIGNS["commands"]
DRAWS_MAX = 6
STEPS_MAX = 60
SELECTORS = ("", "", "", ":waiting", ":active", ":incomplete", ":held", ":f*")
FLOWS = ("", "", "", "new", "all", "none", "1", "2", "1,2")


class Operator:
    """Somebody who does whatever comes to mind."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        case = self.draws(seed)
        self.drawn = case.graph
        self.run = Scenario(_compiled(flow_text(case.graph), self.rng), start=case.graph.start)
        self.names = sorted(self.run.graph.nodes)
        self.final = case.graph.final
        self.said: list[str] = []

    def draws(self, seed: int) -> Case:
        return draw_with_lists(seed)

    def plays(self) -> None:
        for _ in range(STEPS_MAX):
            roll = self.rng.random()
            if roll < 0.5:
                self.ends_a_job()
            elif roll < 0.6:
                self.lets_a_timer_fire()
            elif roll < 0.65:
                self.restarts()
            elif roll < 0.67:
                self.reloads()
            else:
                self.commands(self.chooses())
            for key in self.run.core.tasks:
                assert why(self.run.core, key) or self.run.core.tasks[key].standing

    def ends_a_job(self) -> None:
        active = sorted(key for key, task in self.run.core.tasks.items() if task.is_active)
        if not active:
            return
        key = self.rng.choice(active)
        how = self.rng.choice((*[events.JobEnd.SUCCEEDED] * 3, *events.JobEnd))
        self.said.append(f"{key} {how}")
        submit = self.run.core.tasks[key].submit
        if how is events.JobEnd.SUCCEEDED:
            self.tells_sizes(key, submit)
        self.run.happens(events.JobEnded(key, submit, how, self.run.now))

    def tells_sizes(self, key: Key, submit: int) -> None:
        """Of a list, which a job sometimes forgets to return."""
        part, size = self.drawn.list, self.rng.randint(-1, SIZE_MAX)
        if part is not None and key[1] == part.source and size >= 0:
            self.said.append(f"{key} returns {size}")
            told = size_text(size, submit)
            self.run.happens(events.OutputMade(key, submit, told, self.run.now))

    def restarts(self) -> None:
        """With lists, by another process, which has made no elements yet."""
        self.said.append("restart")
        self.run.restarts(None if self.drawn.list is None else tuple)

    def lets_a_timer_fire(self) -> None:
        timers = [one for one in self.run.effects if isinstance(one, SetTimer)]
        if timers:
            one = self.rng.choice(timers)
            self.said.append(f"{one}")
            self.run.happens(events.TimerFired(one.task, one.name, self.run.now))

    def reloads(self) -> None:
        """Another definition, under the same rules: names and points are much alike."""
        seed = self.rng.randrange(1_000_000)
        self.said.append(f"reload {seed}")
        self.goes_on_with(draw_with_lists(seed).graph)

    def goes_on_with(self, drawn: Drawn) -> None:
        policy = self.run.graph.policy.name
        try:
            graph = compile_flow(flow_text(drawn), policy)
            refuse_other_lists(self.run.core, graph)
        except (AssertionError, Refused):
            return
        self.run.happens(events.RunReloaded(graph, self.run.now))
        self.drawn, self.names, self.final = drawn, sorted(graph.nodes), drawn.final

    def commands(self, command: Command) -> None:
        self.said.append(str(command))
        before = fingerprint(self.run.core)
        try:
            applied = events_of(self.run.core, command, self.run.now)
            if len(applied.events) == 1 and self.rng.random() < 0.2:
                preview(self.run.core, applied.events[0])
                assert fingerprint(self.run.core) == before, "a preview changed something"
            known = len(self.run.effects)
            for event in map(self.with_size, applied.events):
                self.run.happens(event)
        except Refused:
            assert fingerprint(self.run.core) == before, "a refused command changed something"
            return
        answer_of(self.run.core, applied, self.run.effects[known:])
        RunLog(self.run.core)

    def with_size(self, event: events.Event) -> events.Event:
        """A success by hand has the size of the list that was set before."""
        part = self.drawn.list
        if part is None or not isinstance(event, events.OutputsSet):
            return event
        if event.task[1] != part.source:
            return event
        memory, node = self.run.core.recall(*event.task), self.run.core.node(part.source)
        outputs = event.outputs or completing(node, () if memory is None else memory.made)
        size = size_text(self.rng.randint(0, min(SIZE_MAX, part.most)))
        return replace(event, outputs=(size, *outputs))

    def chooses(self) -> Command:
        rng = self.rng
        ids = tuple(self.an_id() for _ in range(rng.choice((1, 1, 1, 2, 3))))
        flow = rng.choice(FLOWS)
        point = str(rng.randint(1, self.final))
        return rng.choice(
            (
                verbs.Trigger(ids=ids, flow=flow, wait=rng.random() < 0.2),
                verbs.Trigger(ids=ids, flow=flow, on_resume=rng.random() < 0.3),
                verbs.Trigger(ids=ids, flow="new", until=point),
                verbs.Trigger(ids=ids, flow="new", ignore_before=True, from_point=point),
                verbs.Trigger(ids=(point,), all_at_point=True, flow=flow),
                verbs.Set(ids=ids, flow=flow, wait=rng.random() < 0.2),
                verbs.Set(ids=ids, flow=flow, outputs=(rng.choice(("fail", "start")),)),
                verbs.Set(ids=ids, flow=flow, prerequisites=("all",)),
                verbs.Remove(ids=ids, flow=flow, kill=rng.random() < 0.5),
                verbs.Remove(ids=ids, forget=True, kill=rng.random() < 0.5),
                verbs.Hold(ids=ids),
                verbs.Hold(after=point),
                verbs.Release(ids=ids),
                verbs.Release(everything=True),
                verbs.Kill(ids=ids),
                verbs.Poll(ids=ids),
                verbs.Pause(),
                verbs.Resume(),
                verbs.Resume(),
                verbs.Stop(at_point=point),
                verbs.Stop(at_point="none"),
                verbs.Stop(flow=rng.randint(1, 3)),
            )
        )

    def an_id(self) -> str:
        rng = self.rng
        point = rng.choice(("*", *map(str, range(1, self.final + 1))))
        name = rng.choice(("*", *self.names, *self.names))
        if "<" in name and rng.random() < 0.7:
            name = element_name(name, rng.randint(0, SIZE_MAX))
        return f"{point}/{name}{rng.choice(SELECTORS)}"


class Editor(Operator):
    """Somebody who also changes the definition a little, again and again.

    Every workflow has a family; limits, points and arrows come and go.
    """

    def draws(self, seed: int) -> Case:
        seeds = (self.rng.randrange(1_000_000_000) for _ in range(DRAWS_MAX))
        cases = map(draw_with_lists, seeds)
        return next((case for case in cases if case.graph.families), draw_with_lists(seed))

    def plays(self) -> None:
        for _ in range(STEPS_MAX):
            roll = self.rng.random()
            if roll < 0.45:
                self.ends_a_job()
            elif roll < 0.5:
                self.restarts()
            elif roll < 0.65:
                self.edits()
            elif roll < 0.7 and self.run.status == "stopped":
                self.said.append("continue")
                self.run.happens(events.RunContinued(self.run.now))
            elif roll < 0.73:
                self.commands(verbs.Stop(after_task=self.a_plain_id()))
            else:
                self.commands(self.chooses())

    def edits(self) -> None:
        rng, drawn = self.rng, self.drawn
        edited = drawn
        match rng.randrange(6):
            case 0:
                edited = replace(drawn, limit=rng.choice((None, 1, 2, 3)))
            case 1:
                edited = replace(drawn, runahead=rng.choice((None, 0, 1, 2)))
            case 2:
                kept = tuple(one for one in drawn.arrows if rng.random() < 0.9)
                edited = replace(drawn, arrows=kept)
            case 3:
                edited = replace(drawn, arrows=(*drawn.arrows, *self.other_arrows()))
            case 4 if drawn.list is not None:
                edited = self.another_list(drawn)
            case _:
                pass  # as it was
        self.said.append(f"edit {flow_text(edited)}")
        if not never_there(edited) and not has_cycle(edited):
            self.goes_on_with(edited)

    def other_arrows(self) -> list[Arrow]:
        """Of another definition with the same points."""
        for _ in range(DRAWS_MAX):
            other = draw_with_lists(self.rng.randrange(1_000_000_000)).graph
            if other.final == self.drawn.final and other.families == self.drawn.families:
                plain = [one for one in other.arrows if not _is_mapped(one)]
                return [one for one in plain if self.rng.random() < 0.3]
        return []

    def another_list(self, drawn: Drawn) -> Drawn:
        """One with another bound, or none."""
        assert drawn.list is not None
        if self.rng.random() < 0.7:
            return replace(drawn, list=replace(drawn.list, most=self.rng.randint(1, 5)))
        plain = tuple(one for one in drawn.arrows if not _is_mapped(one))
        return replace(drawn, arrows=plain, list=None)

    def an_id(self) -> str:
        one = super().an_id()
        point = one.partition("/")[0]
        return f"{point}/FAM" if self.drawn.families and self.rng.random() < 0.2 else one

    def a_plain_id(self) -> str:
        return f"{self.rng.randint(1, self.final)}/{self.rng.choice(self.names)}"


def _is_mapped(arrow: Arrow) -> bool:
    return arrow.hidden or any(leaf.source for leaf in leaves(arrow.condition))


def _compiled(text: str, rng: Random) -> Graph:
    """Under Cylc 8's rules, too, where they allow it."""
    if rng.random() < 0.3:
        try:
            return compile_flow(text, "cylc8")
        except AssertionError:
            pass
    return compile_flow(text)


def play(seed: int) -> None:
    """Play one workflow with each kind of operator."""
    for who in (Operator, Editor):
        operator = None
        try:
            operator = who(seed)
            operator.plays()
        except Exception as error:
            said = [] if operator is None else operator.said
            shown = "\n".join((who.__name__, *said))
            raise AssertionError(f"{error!r}\n{shown}") from error


@pytest.mark.parametrize("seed", COMMANDS.begins())
def test_no_command_breaks_a_run_and_no_restart_changes_one(seed):
    with campaigns_of(COMMANDS) as campaigns:
        campaigns.hold(seed, COMMANDS.each)
