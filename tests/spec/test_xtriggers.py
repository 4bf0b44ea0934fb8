"""SEMANTICS §11: what tasks wait for besides their parents, in virtual time."""

import asyncio
from dataclasses import dataclass, field

import pytest

from tests.kit.scenario import compile_flow
from tests.kit.virtual_time import VirtualClock, in_virtual_time
from tidewheel.core.graph.definition import XtriggerDef
from tidewheel.core.operator.requests import StoredBroadcast, XtriggerResult
from tidewheel.core.queue.task import Instant
from tidewheel.errors import Refused, StoreBusy
from tidewheel.runners.python.functions import FunctionAnswer, FunctionFailure
from tidewheel.scheduler.xtriggers import (
    RunContext,
    Satisfied,
    Xtriggers,
    XtriggerSettings,
    XtriggerSurroundings,
    call_for,
)
from tidewheel.services.clock_triggers import ClockTriggers
from tidewheel.services.workflow_state import StateAnswer, StateRow

CONTEXT = RunContext(run="flow/run1", user="ada", directory="/runs/flow/run1")
NOT_YET = FunctionAnswer(False, {})
NOW = Instant(0.0)


def flow(xtriggers: str, graph: str = "P1 = @x => a & b"):
    return compile_flow(
        f"""
        [scheduling]
            cycling mode = integer
            initial cycle point = 1
            final cycle point = 9
            [[special tasks]]
                external-trigger = c("data is there")
            [[xtriggers]]
                {xtriggers}
            [[graph]]
                {graph}
                R1 = c
        [runtime]
            [[a, b, c]]
        """
    )


@dataclass
class World:
    """Functions whose answers are set by the test, and what came out."""

    answer: object = NOT_YET
    own: tuple[str, ...] = ()
    calls: list[tuple[float, str, tuple, dict]] = field(default_factory=list)
    asked: list = field(default_factory=list)
    states: object = field(default_factory=StateAnswer)
    reports: list = field(default_factory=list)
    seconds: float = 0.0
    at_once: int = 0
    most_at_once: int = 0
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    closed: bool = False

    async def close(self):
        self.closed = True

    def is_own(self, function):
        return function in self.own

    async def call(self, function, arguments, keywords):
        now = asyncio.get_running_loop().time()
        self.calls.append((now, function, tuple(arguments), dict(keywords)))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(self.seconds)
        self.at_once -= 1
        answer = self.answer
        return answer(function, *arguments, **keywords) if callable(answer) else answer

    async def ask(self, question):
        self.asked.append(question)
        if isinstance(self.states, Exception):
            raise self.states
        return self.states

    def xtriggers(self, graph, **settings):
        around = XtriggerSurroundings(
            context=CONTEXT,
            functions=self,
            ask=self.ask,
            clock=VirtualClock(),
            wake=self.woken.set,
            on_report=self.reports.append,
            settings=XtriggerSettings(**settings),
        )
        return Xtriggers(graph, around)

    async def satisfied(self, xtriggers):
        """What comes out when something does."""
        await self.woken.wait()
        self.woken.clear()
        return xtriggers.take_satisfied()


@in_virtual_time
async def test_tasks_that_wait_for_the_same_call_share_it():
    """One call for all of them."""
    world = World(answer=FunctionAnswer(True, {"size": "7"}))
    xtriggers = world.xtriggers(flow("x = poll(%(point)s)"))
    for key in ((1, "a"), (1, "b"), (2, "a")):
        xtriggers.watch(key, "x", NOW)
    assert await world.satisfied(xtriggers) == [
        Satisfied("x", ((1, "a"), (1, "b")), "poll(1)", {"size": "7"}),
        Satisfied("x", ((2, "a"),), "poll(2)", {"size": "7"}),
    ]
    assert [call[1:3] for call in world.calls] == [("poll", ("1",)), ("poll", ("2",))]


@in_virtual_time
async def test_a_call_is_made_at_once_and_then_after_each_interval():
    world = World()
    xtriggers = world.xtriggers(flow("x = poll():PT7S"))
    xtriggers.watch((1, "a"), "x", NOW)
    await asyncio.sleep(20)
    world.answer = FunctionAnswer(True, {})
    assert [one.keys for one in await world.satisfied(xtriggers)] == [((1, "a"),)]
    assert [call[0] for call in world.calls] == [0, 7, 14, 21]
    await asyncio.sleep(100)
    assert len(world.calls) == 4


@in_virtual_time
async def test_an_interval_counts_from_the_beginning_of_a_call():
    world = World(seconds=3)
    xtriggers = world.xtriggers(flow("x = poll():PT5S"))
    xtriggers.watch((1, "a"), "x", NOW)
    await asyncio.sleep(12)
    assert [call[0] for call in world.calls] == [0, 5, 10]
    await xtriggers.close()


@in_virtual_time
async def test_what_was_satisfied_is_remembered_and_outlives_the_process():
    world = World(answer=FunctionAnswer(True, {"size": "7"}))
    first = world.xtriggers(flow("x = poll()"))
    first.watch((1, "a"), "x", NOW)
    await world.satisfied(first)
    rows = first.take_rows()
    assert rows == [XtriggerResult("poll()", '{"size": "7"}')]
    assert first.take_rows() == []
    second = world.xtriggers(flow("x = poll()"))
    second.restore(rows)
    second.watch((2, "a"), "x", NOW)
    assert second.take_satisfied() == [Satisfied("x", ((2, "a"),), "poll()", {"size": "7"})]
    assert len(world.calls) == 1


@in_virtual_time
async def test_only_so_many_satisfied_calls_are_remembered():
    world = World(answer=FunctionAnswer(True, {}))
    xtriggers = world.xtriggers(flow("x = poll(%(point)s)"), remembered_max=2)
    for point in (1, 2, 3):
        xtriggers.watch((point, "a"), "x", NOW)
        await world.satisfied(xtriggers)
    assert xtriggers.take_rows() == [
        XtriggerResult("poll(1)", ""),
        XtriggerResult("poll(2)", "{}"),
        XtriggerResult("poll(3)", "{}"),
    ]


@in_virtual_time
async def test_nothing_is_called_for_tasks_that_wait_no_longer():
    world = World()
    xtriggers = world.xtriggers(flow("x = poll()"))
    xtriggers.watch((1, "a"), "x", NOW)
    xtriggers.watch((1, "b"), "x", NOW)
    await asyncio.sleep(5)
    xtriggers.drop((1, "a"), "x")
    await asyncio.sleep(10)
    assert len(world.calls) == 2
    xtriggers.drop((1, "b"), "x")
    xtriggers.drop((1, "b"), "x")
    await asyncio.sleep(100)
    assert len(world.calls) == 2
    xtriggers.watch((1, "a"), "x", NOW)
    await asyncio.sleep(1)
    assert len(world.calls) == 3
    await xtriggers.close()


@in_virtual_time
async def test_a_failure_is_told_once_until_it_changes_and_the_call_is_made_again():
    world = World(answer=FunctionFailure("it raised OSError: no disk", "said before"))
    xtriggers = world.xtriggers(flow("x = poll():PT1S"))
    xtriggers.watch((1, "a"), "x", NOW)
    await asyncio.sleep(3.5)
    world.answer = FunctionFailure("it took more than 10 seconds")
    await asyncio.sleep(3)
    world.answer = NOT_YET
    await asyncio.sleep(3)
    told = [(one.event, one.facts.get("error")) for one in world.reports]
    assert told == [
        ("xtrigger.failed", "it raised OSError: no disk"),
        ("xtrigger.failed", "it took more than 10 seconds"),
        ("xtrigger.works", None),
    ]
    assert world.reports[0].facts["label"] == "x"
    assert world.reports[0].facts["said"] == "said before"
    world.answer = FunctionAnswer(True, {})
    assert await world.satisfied(xtriggers)


@in_virtual_time
async def test_no_more_calls_are_under_way_than_the_limit():
    world = World(seconds=1)
    xtriggers = world.xtriggers(flow("x = poll(%(id)s):PT60S"), call_limit=3)
    for point in range(1, 9):
        xtriggers.watch((point, "a"), "x", NOW)
    await asyncio.sleep(30)
    assert len(world.calls) == 8
    assert world.most_at_once == 3
    await xtriggers.close()


@in_virtual_time
async def test_a_sequential_xtrigger_is_called_for_one_point_after_the_other():
    world = World()
    xtriggers = world.xtriggers(flow("x = poll(%(point)s, sequential=True):PT1S"))
    for point in (3, 1, 2):
        xtriggers.watch((point, "a"), "x", NOW)
    xtriggers.drop((3, "a"), "x")
    await asyncio.sleep(2.5)
    called = {call[2] for call in world.calls if call[0] >= 1}
    assert called == {("1",)}
    xtriggers.drop((1, "a"), "x")
    world.answer = FunctionAnswer(True, {})
    assert [one.keys for one in await world.satisfied(xtriggers)] == [((2, "a"),)]


@in_virtual_time
async def test_a_task_with_parents_is_called_for_at_every_point():
    """Its instances come when their parents do, also in Cylc."""
    world = World()
    graph = flow("x = poll(%(point)s, sequential=True)", 'P1 = """\n@x => a\nb => a\n"""')
    xtriggers = world.xtriggers(graph)
    for point in (1, 2, 3):
        xtriggers.watch((point, "a"), "x", NOW)
    await asyncio.sleep(1)
    assert len(world.calls) == 3
    await xtriggers.close()


# Clocks.

DAILY = """
[scheduling]
    initial cycle point = 20000101T00Z
    [[xtriggers]]
        late = wall_clock({offset})
    [[graph]]
        P1D = @late => a
[runtime]
    [[a]]
"""
DAY = 86400


@pytest.mark.req("R001-6")
@pytest.mark.parametrize(
    ("offset", "seconds"),
    [
        ("", 0),
        ("PT1H", 3600),
        ("offset=-PT1H30M", -5400),
        ("P1DT1S", DAY + 1),
        ("P1W", 7 * DAY),
        ("P2M", (31 + 29) * DAY),
    ],
)
def test_a_clock_is_a_time_and_never_polled(offset, seconds):
    graph = compile_flow(DAILY.format(offset=offset))
    clocks = ClockTriggers(graph.xtriggers, graph.cycling)
    initial = graph.cycling.initial
    assert clocks.due_at("late", initial) == initial + seconds
    assert clocks.due_at("wall_clock", initial) == initial
    assert clocks.due_at("other", initial) is None


@pytest.mark.req("R001-6")
@in_virtual_time
async def test_whoever_watches_a_clock_is_let_go_at_its_time():
    world = World()
    graph = compile_flow(DAILY.format(offset="PT1H"))
    initial = graph.cycling.initial
    xtriggers = world.xtriggers(graph)
    assert xtriggers.due_at((initial, "a"), "late") == initial + 3600
    xtriggers.watch((initial, "a"), "late", Instant(initial - 400.0))
    assert (await world.satisfied(xtriggers))[0].keys == ((initial, "a"),)
    assert asyncio.get_running_loop().time() == 4000
    assert xtriggers.take_rows() == []
    xtriggers.watch((initial, "a"), "late", Instant(initial + 3600.0))
    assert xtriggers.take_satisfied()


def test_integer_points_wait_for_no_clock():
    graph = flow("x = poll()")
    assert ClockTriggers(graph.xtriggers, graph.cycling).due_at("wall_clock", 5) == 0


# Words in arguments.


def test_arguments_have_the_words_of_the_task_and_the_run():
    text = "%(id)s %(point)s %(name)s %(workflow)s %(user_name)s %(workflow_run_dir)s"
    more = "%(workflow_share_dir)s %(debug)s %(suite_name)s"
    xtrigger = XtriggerDef("x", "f", (text, 5, "100%"), (("k", more),))
    call = call_for(xtrigger, CONTEXT.words("1", "a"))
    assert call.arguments == ("1/a 1 a flow/run1 ada /runs/flow/run1", 5, "100%")
    assert dict(call.keywords) == {"k": "/runs/flow/run1/share False flow/run1"}


@in_virtual_time
async def test_results_come_into_the_environment_under_the_label():
    world = World(answer=FunctionAnswer(True, {"size": "7"}))
    xtriggers = world.xtriggers(flow("x = poll(%(point)s)"))
    xtriggers.watch((1, "a"), "x", NOW)
    await world.satisfied(xtriggers)
    assert xtriggers.results_for((1, "a")) == (("x", {"size": "7"}),)
    assert xtriggers.results_for((2, "a")) == ()
    assert xtriggers.results_for((1, "c")) == ()


# States of other workflows.


@in_virtual_time
async def test_the_state_of_another_workflow_is_asked_of_the_store():
    row = StateRow("1", "t", "succeeded", {}, frozenset({1}))
    world = World(states=StateAnswer(reason="there is no run 'other' in this store"))
    xtriggers = world.xtriggers(flow("x = workflow_state(other//%(point)s/t:succeeded):PT5S"))
    xtriggers.watch((1, "a"), "x", NOW)
    await asyncio.sleep(1)
    world.states = StoreBusy("the store is busy")
    await asyncio.sleep(5)
    world.states = StateAnswer(rows=(row,), results={"task": "t"})
    assert [one.results for one in await world.satisfied(xtriggers)] == [{"task": "t"}]
    assert {(one.workflow, one.point, one.name) for one in world.asked} == {("other", "1", "t")}
    errors = [str(one.facts.get("error")) for one in world.reports]
    assert "no run 'other'" in errors[0]
    assert "busy" in errors[1]
    assert world.calls == []


@in_virtual_time
async def test_a_workflow_may_bring_a_workflow_state_of_its_own():
    world = World(own=("workflow_state",), answer=FunctionAnswer(True, {}))
    xtriggers = world.xtriggers(flow("x = workflow_state(other//1/t)"))
    xtriggers.watch((1, "a"), "x", NOW)
    assert await world.satisfied(xtriggers)
    assert world.asked == []


# Push triggers.

LABEL = "message/data is there"


@in_virtual_time
async def test_a_message_lets_one_task_go_and_says_which_it_was():
    world = World()
    xtriggers = world.xtriggers(flow("x = poll()"))
    xtriggers.watch((2, "c"), LABEL, NOW)
    xtriggers.watch((1, "c"), LABEL, NOW)
    xtriggers.hear("data is there", "id-1")
    (found,) = xtriggers.take_satisfied()
    assert found.keys == ((1, "c"),)
    assert xtriggers.broadcasts(found) == [
        StoredBroadcast("1", "root", "[environment]CYLC_EXT_TRIGGER_ID", "id-1")
    ]
    xtriggers.hear("something else", "id-2")
    assert xtriggers.take_satisfied() == []
    xtriggers.hear("data is there", "id-1")
    assert [one.keys for one in xtriggers.take_satisfied()] == [((2, "c"),)]


@in_virtual_time
async def test_a_message_is_kept_until_somebody_waits_for_it_also_over_a_restart():
    world = World()
    first = world.xtriggers(flow("x = poll()"))
    first.hear("data is there", "id-1")
    first.hear("data is there", "id-2")
    assert first.take_satisfied() == []
    second = world.xtriggers(flow("x = poll()"))
    second.restore(first.take_rows())
    second.watch((1, "c"), LABEL, NOW)
    second.watch((2, "c"), LABEL, NOW)
    second.watch((3, "c"), LABEL, NOW)
    found = second.take_satisfied()
    assert [(one.keys[0][0], one.results["CYLC_EXT_TRIGGER_ID"]) for one in found] == [
        (1, "id-1"),
        (2, "id-2"),
    ]
    assert second.take_rows() == [XtriggerResult(LABEL, "")]
    second.drop((3, "c"), LABEL)
    second.hear("data is there")
    assert second.take_satisfied() == []


@in_virtual_time
async def test_messages_that_nobody_waits_for_are_refused_in_the_end():
    xtriggers = World().xtriggers(flow("x = poll()"), heard_max=2)
    xtriggers.hear("data", "1")
    xtriggers.hear("data", "1")
    with pytest.raises(Refused, match="no task waits"):
        xtriggers.hear("data", "2")


@in_virtual_time
async def test_a_message_is_forgotten_with_the_batch_that_lets_its_task_go_and_not_before():
    xtriggers = World().xtriggers(flow("x = poll()"))
    xtriggers.hear("data is there", "id-1")
    assert xtriggers.take_satisfied() == []
    xtriggers.watch((1, "c"), LABEL, NOW)
    assert xtriggers.take_rows() == [XtriggerResult(LABEL, '{"id-1": 1}')]
    assert len(xtriggers.take_satisfied()) == 1
    assert xtriggers.take_rows() == [XtriggerResult(LABEL, "")]


# Reload.


@in_virtual_time
async def test_after_a_reload_tasks_wait_for_what_the_definition_says_now():
    world = World()
    xtriggers = world.xtriggers(flow("x = poll(old)\n y = poll(gone)"))
    xtriggers.watch((1, "a"), "x", NOW)
    xtriggers.watch((1, "a"), "y", NOW)
    await asyncio.sleep(1)
    world.calls.clear()
    xtriggers.redefine(flow("x = poll(new)"), NOW)
    await asyncio.sleep(30)
    assert {call[2] for call in world.calls} == {("new",)}
    await xtriggers.close()


@in_virtual_time
async def test_a_label_may_be_watched_before_its_definition_was_reloaded():
    world = World(answer=FunctionAnswer(True, {}))
    xtriggers = world.xtriggers(flow("x = poll()"))
    xtriggers.watch((1, "a"), "fresh", NOW)
    xtriggers.watch((2, "a"), "fresh", NOW)
    xtriggers.drop((2, "a"), "fresh")
    assert world.calls == []
    xtriggers.redefine(flow("fresh = poll()", "P1 = @fresh => a & b"), NOW)
    assert [one.keys for one in await world.satisfied(xtriggers)] == [((1, "a"),)]


@in_virtual_time
async def test_whoever_calls_functions_is_closed_with_the_xtriggers():
    world = World()
    xtriggers = world.xtriggers(flow("x = poll()"))
    xtriggers.watch((1, "a"), "x", NOW)
    await xtriggers.close()
    assert world.closed
    assert world.calls == []


@in_virtual_time
async def test_a_bug_in_a_watch_is_not_swallowed():
    def broken(*_arguments, **_keywords):
        raise AssertionError("a bug")

    world = World(answer=broken)
    xtriggers = world.xtriggers(flow("x = poll()"))
    xtriggers.watch((1, "a"), "x", NOW)
    await world.woken.wait()
    with pytest.raises(AssertionError, match="a bug"):
        xtriggers.take_satisfied()
