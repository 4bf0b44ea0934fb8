"""Services: stages that run until others have ended (R011-10)."""

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.kit.scenario import Scenario
from tests.support.sips import definition, graph_of, judged, stage
from tidewheel.core.sched import events
from tidewheel.errors import Refused

pytestmark = pytest.mark.req("R011-10")

# An engine that two stages use, one after the other.
ENGINE = (
    stage("engine", more="until: [grid, image]"),
    stage("grid", "engine running"),
    stage("image", "engine running", "grid complete"),
)


def graph(*stages, parameters=None):
    names = [one.split()[2] for one in stages]
    return graph_of(judged(definition(*stages), *names, request=parameters or {}))


def run_of(*stages, **options):
    return Scenario(graph(*stages), **options)


def let_go(run):
    """The services whose jobs the run has ended, in order."""
    return run.notices("let go")


def ended(run, one):
    """How a task ended that left the pool."""
    point, name = run.key(one)
    memory = run.core.recall(point, name)
    return memory.verdicts[1].ended if memory and memory.verdicts else None


def test_a_service_is_ended_when_all_stages_for_which_it_runs_have_ended_and_has_succeeded():
    run = run_of(*ENGINE).succeeds("1/grid")
    assert run.pool == {"1/engine": "running", "1/image": "running"}
    assert run.killed == []
    run.succeeds("1/image")
    assert run.killed == ["1/engine"] and run.status == "running"
    assert let_go(run) == ["engine is being ended: grid and image have ended"]
    run.is_killed("1/engine")
    assert run.completed and ended(run, "1/engine") == "succeeded"


@pytest.mark.parametrize("how", list(events.JobEnd))
def test_a_service_that_was_let_go_has_succeeded_however_its_job_ends(how):
    run = run_of(*ENGINE).succeeds("1/grid", "1/image")
    task = run.core.tasks[run.key("1/engine")]
    run.happens(events.JobEnded(task.key, task.submit, how, run.now))
    assert run.completed and ended(run, "1/engine") == "succeeded"


@pytest.mark.parametrize("how", [events.JobEnd.SUCCEEDED, events.JobEnd.FAILED])
def test_a_service_that_ends_by_itself_has_failed_whatever_its_exit_status(how):
    run = run_of(*ENGINE)
    task = run.core.tasks[run.key("1/engine")]
    run.happens(events.JobEnded(task.key, task.submit, how, run.now))
    assert run.pool["1/engine"] == "failed" and run.status == "running"
    # Those who use it fail by themselves.
    run.fails("1/grid")
    assert run.stalled and run.causes == ["1/engine", "1/grid"]
    (told,) = run.notices("stalled")
    assert "engine failed before the end of grid and image, for which it runs" in told


def test_a_service_that_an_operator_kills_has_failed_and_is_held():
    run = (
        run_of(*ENGINE).happens(events.JobsKilled(((1, "engine"),), 0.0)).is_killed("1/engine")
    )
    task = run.core.tasks[run.key("1/engine")]
    assert task.ended == "failed" and task.held


@pytest.mark.parametrize("end", ["succeeds", "fails", "is_killed", "submit_fails"])
def test_a_stage_has_ended_for_its_service_in_whichever_way_it_did(end):
    run = run_of(stage("engine", more="until: use"), stage("use", "engine running"))
    getattr(run, end)("1/use")
    assert run.killed == ["1/engine"]
    run.is_killed("1/engine")
    assert run.completed if end == "succeeds" else run.stalled
    assert ended(run, "1/engine") == "succeeded"


def test_a_service_ends_when_its_stages_will_never_begin():
    run = run_of(
        stage("engine", more="until: deep"),
        stage("look"),
        stage("deep", "look failed", "engine running"),
    )
    run.succeeds("1/look")
    assert run.verdicts == {"1/deep": "not taken"} and run.killed == ["1/engine"]
    assert run.is_killed("1/engine").completed


def test_a_service_ends_when_nothing_else_can_happen_and_the_run_is_stalled_as_without_it():
    run = run_of(
        stage("engine", more="until: image"),
        stage("calibrate"),
        stage("image", "calibrate complete", "engine running"),
    )
    run.fails("1/calibrate")
    assert let_go(run) == ["engine is being ended: image cannot begin without action"]
    assert run.status == "running"  # until its job has ended
    run.is_killed("1/engine")
    assert run.stalled and run.causes == ["1/calibrate"]


def test_a_service_waits_for_a_stage_that_is_held_and_for_one_that_waits_for_an_object():
    held = run_of(
        stage("engine", more="until: use"), stage("use", "engine running"), start_jobs=False
    )
    held.holds("1/use").starts("1/engine")
    assert held.killed == [] and held.status == "running"
    assert held.releases("1/use").starts("1/use").succeeds("1/use").killed == ["1/engine"]
    waits = run_of(
        stage("engine", more="until: use"),
        stage("use", "engine running", "object:data present"),
    )
    assert waits.killed == [] and waits.status == "running"


def test_a_service_is_not_let_go_before_it_has_started_since_its_end_would_look_like_a_start():
    run = run_of(
        stage("engine", more="until: [look, deep]"),
        stage("look"),
        stage("deep", "look failed"),
        stage("watch", "engine running"),
        start_jobs=False,
    )
    run.starts("1/look").succeeds("1/look")
    assert run.killed == [] and "1/watch" not in run.submitted
    run.starts("1/engine")
    assert run.killed == ["1/engine"] and "1/watch" in run.submitted


def test_while_a_run_is_paused_its_services_run_on():
    run = run_of(*ENGINE, start_jobs=False).starts("1/engine")
    run.happens(events.RunPaused(run.now)).starts("1/grid").succeeds("1/grid")
    assert run.killed == [] and run.status == "paused"
    run.happens(events.RunResumed(run.now))
    assert run.submitted[-1] == "1/image"


def test_a_clean_stop_does_not_wait_for_a_service_which_runs_on_and_is_found_again():
    run = run_of(*ENGINE).happens(events.RunStopped(events.StopMode.CLEAN, 0.0))
    assert run.status == "stopping"
    run.succeeds("1/grid")
    assert run.status == "stopped" and run.killed == []
    run.restarts().happens(events.RunContinued(run.now))
    assert run.pool == {"1/engine": "running", "1/image": "running"}
    assert run.succeeds("1/image").is_killed("1/engine").completed


def test_a_clean_stop_waits_for_a_service_that_was_let_go():
    run = run_of(*ENGINE).succeeds("1/grid")
    run.happens(events.RunStopped(events.StopMode.CLEAN, 0.0)).succeeds("1/image")
    assert run.killed == ["1/engine"] and run.status == "stopping"
    run.is_killed("1/engine")
    assert run.status == "stopped" and ended(run, "1/engine") == "succeeded"


def test_what_is_killed_with_its_run_has_not_succeeded():
    run = run_of(*ENGINE).happens(events.RunStopped(events.StopMode.KILL, 0.0))
    assert sorted(run.killed) == ["1/engine", "1/grid"]
    run.is_killed("1/grid")
    assert run.status == "stopping" and let_go(run) == []
    run.is_killed("1/engine")
    assert run.status == "stopped" and run.core.tasks[run.key("1/engine")].ended == "failed"


def test_a_restart_knows_that_a_service_was_let_go():
    run = run_of(*ENGINE).succeeds("1/grid", "1/image").restarts()
    assert run.is_killed("1/engine").completed
    assert run.killed == ["1/engine"]


def test_a_restart_knows_the_services_that_run():
    run = run_of(*ENGINE).succeeds("1/grid").restarts().succeeds("1/image")
    assert run.killed == ["1/engine"]


def test_a_service_triggered_again_with_those_who_use_it_runs_until_they_have_ended():
    run = run_of(stage("engine", more="until: use"), stage("use", "engine running"))
    run.fails("1/use").is_killed("1/engine")
    assert run.stalled
    run.triggers("1/engine", "1/use")
    assert run.killed == ["1/engine"]
    assert run.succeeds("1/use").killed == ["1/engine", "1/engine"]
    assert run.is_killed("1/engine").completed


def test_a_stage_that_is_triggered_again_gets_its_service_back_and_waits_for_its_start():
    """Or it would run without it, and perhaps succeed."""
    stages = stage("engine", more="until: use"), stage("use", "engine running")
    run = run_of(*stages, start_jobs=False).starts("1/engine").starts("1/use")
    run.fails("1/use").is_killed("1/engine")
    assert run.stalled
    run.triggers("1/use")
    assert run.pool == {"1/engine": "preparing", "1/use": "waiting"}
    run.starts("1/engine")
    assert run.pool["1/use"] == "preparing"
    run.starts("1/use").succeeds("1/use").is_killed("1/engine")
    assert run.status == "completed"


def test_a_service_that_runs_again_for_a_stage_and_fails_is_not_overlooked():
    run = run_of(stage("engine", more="until: use"), stage("use", "engine running"))
    run.fails("1/use").is_killed("1/engine").triggers("1/use")
    run.fails("1/engine").succeeds("1/use")
    assert run.stalled and run.causes == ["1/engine"]


def test_a_stage_behind_others_that_use_a_service_gets_it_back_too():
    run = run_of(
        stage("engine", more="until: image"),
        stage("grid", "engine running"),
        stage("image", "grid complete"),
    )
    run.succeeds("1/grid").fails("1/image").is_killed("1/engine").triggers("1/image")
    assert run.pool == {"1/engine": "running", "1/image": "running"}


def test_a_stage_is_not_triggered_while_its_service_is_being_ended():
    run = run_of(stage("engine", more="until: use"), stage("use", "engine running"))
    run.fails("1/use")
    with pytest.raises(Refused, match="engine, which runs for use, is being ended"):
        run.triggers("1/use")


def test_a_reload_that_drops_a_service_ends_it():
    """Or the run would wait for what never ends."""
    run = run_of(stage("engine", more="until: use"), stage("use", "engine running"))
    run.happens(events.RunReloaded(graph(stage("use")), 0.0))
    assert run.killed == ["1/engine"]
    assert run.is_killed("1/engine").succeeds("1/use").completed


def test_a_service_triggered_alone_has_nobody_to_run_for_and_is_ended_at_once():
    run = run_of(stage("engine", more="until: use"), stage("use", "engine running"))
    run.fails("1/use").is_killed("1/engine").triggers("1/engine")
    assert run.killed == ["1/engine", "1/engine"]


def test_a_reload_may_make_a_stage_a_service_and_may_let_one_run_on():
    plain = (stage("engine"), stage("use", "engine running"))
    service = (stage("engine", more="until: use"), stage("use", "engine running"))
    run = run_of(*plain).happens(events.RunReloaded(graph(*service), 0.0)).succeeds("1/use")
    assert run.killed == ["1/engine"]
    run = run_of(*service).happens(events.RunReloaded(graph(*plain), 0.0)).succeeds("1/use")
    assert run.killed == [] and run.succeeds("1/engine").completed
    # That it was let go is not forgotten.
    run = run_of(*service).succeeds("1/use").happens(events.RunReloaded(graph(*plain), 0.0))
    assert run.is_killed("1/engine").completed


def test_a_stage_after_a_service_begins_when_the_service_was_ended():
    run = run_of(
        stage("engine", more="until: use"),
        stage("use", "engine running"),
        stage("report", "engine complete"),
    )
    run.succeeds("1/use")
    assert "1/report" not in run.submitted
    assert run.is_killed("1/engine").submitted[-1] == "1/report"


def test_services_of_services_end_one_after_the_other():
    run = run_of(
        stage("store", more="until: engine"),
        stage("engine", "store running", more="until: use"),
        stage("use", "engine running"),
    )
    run.succeeds("1/use")
    assert run.killed == ["1/engine"]
    assert run.is_killed("1/engine").killed == ["1/engine", "1/store"]
    assert run.is_killed("1/store").completed


def test_a_service_for_a_stage_of_many_elements_runs_until_the_last_of_them():
    run = run_of(
        stage("engine", more="until: use"),
        stage("use", "engine running", more="for_each: [x, y, z]"),
    )
    run.makes("1/list@use", "item[3]").succeeds("1/list@use")
    run.succeeds("1/use_item0", "1/use_item2")
    assert run.killed == []
    assert run.succeeds("1/use_item1").killed == ["1/engine"]


def test_elements_of_a_service_all_run_until_the_stage_that_uses_them_has_ended():
    run = run_of(
        stage("workers", more="for_each: [x, y, z]\nuntil: client"),
        stage("client", "workers running"),
    )
    run.makes("1/list@workers", "item[3]").succeeds("1/list@workers")
    elements = [f"1/workers_item{index}" for index in range(3)]
    assert run.succeeds("1/client").killed == elements
    assert run.is_killed(*elements).completed


def test_a_service_for_elements_that_are_not_known_yet_waits_for_who_tells_how_many():
    run = run_of(
        stage("engine", more="until: use"),
        stage("before"),
        stage("use", "before complete", "engine running", more="for_each: [x, y]"),
    )
    assert run.submitted == ["1/engine", "1/before"] and run.killed == []
    run.succeeds("1/before").makes("1/list@use", "item[2]").succeeds("1/list@use")
    assert run.killed == [] and run.succeeds("1/use_item0", "1/use_item1").killed == [
        "1/engine"
    ]


def test_why_says_until_when_a_service_runs_and_that_it_is_being_ended():
    run = run_of(*ENGINE)
    assert [one.text for one in run.why("1/engine")] == [
        "engine is running, until grid and image have ended"
    ]
    assert [one.text for one in run.why("1/grid")] == ["grid is running"]
    run.succeeds("1/grid", "1/image")
    assert [one.text for one in run.why("1/engine")] == [
        "engine is running, and is being ended"
    ]


def test_a_service_that_runs_in_no_flow_is_ended_when_its_stages_have_ended_in_any():
    run = run_of(stage("engine", more="until: use"), stage("use", "engine running"))
    run.succeeds("1/use").is_killed("1/engine")
    run.triggers("1/engine", flow=events.FlowChoice.NONE)
    assert run.killed == ["1/engine", "1/engine"]


def test_a_service_runs_for_a_stage_of_which_nothing_is_known_yet():
    run = run_of(stage("engine", more="until: use"), stage("a"), stage("use", "a complete"))
    assert run.killed == [] and run.pool == {"1/engine": "running", "1/a": "running"}
    assert run.succeeds("1/a", "1/use").killed == ["1/engine"]


CONDITIONS = ("complete", "running", "failed", "finished")


@st.composite
def workflows(draw):
    """Stages in an order, some of which wait for earlier ones; services run for later ones."""
    count = draw(st.integers(2, 6))
    until: dict[int, list[int]] = {}
    stages = []
    for number in range(count):
        later = range(number + 1, count)
        if later and draw(st.booleans()):
            until[number] = draw(st.lists(st.sampled_from(later), min_size=1, unique=True))
        earlier = range(number)
        needs = (
            draw(st.lists(st.sampled_from(earlier), max_size=2, unique=True)) if number else ()
        )
        # Who waits for the end of a service that runs for it would wait for ever.
        words = [
            f"s{one} {'running' if one in until else draw(st.sampled_from(CONDITIONS))}"
            for one in needs
        ]
        served = ", ".join(f"s{one}" for one in until.get(number, ()))
        stages.append(stage(f"s{number}", *words, more=f"until: [{served}]" if served else ""))
    return tuple(stages)


class Oracle:
    """Plays jobs by chance. It sees what is submitted and killed, and ends that it makes."""

    def __init__(self, run, until, chance):
        self.run, self.until, self.random = run, until, chance
        self.started, self.ended = set(), set()
        self.submitted_before = {}  # by service: what had begun when it was ended

    def plays_on(self):
        """Play something, if there is anything to play; judge what there is before that."""
        for one in self.run.killed:
            self.submitted_before.setdefault(one, set(self.run.submitted))
        open_ones = [one for one in self.run.submitted if one not in self.ended]
        serving = {*self.until} & self.started - self.ended - {*self.run.killed}
        for one in serving:
            assert self.until[one] - self.ended, f"{one} is not needed and runs on"
        assert not open_ones or serving != {*open_ones}, f"{serving} run for nobody"
        if open_ones:
            self._plays(self.random.choice(open_ones), serving)
        return bool(open_ones)

    def _plays(self, one, serving):
        if one not in self.started:
            self.started.add(one)
            self.run.starts(one)
        elif one not in serving or self.random.random() < 0.2:
            self.ended.add(one)
            end = self.random.choice((self.run.succeeds, self.run.fails, self.run.is_killed))
            end(one)
            if one in self.until:
                assert (ended(self.run, one) == "succeeded") is (one not in serving)
        if self.random.random() < 0.2:
            self.run.restarts()

    def judges_the_end(self):
        killed = self.run.killed
        assert len(killed) == len({*killed}), "a service was ended twice"
        assert {*killed} <= {*self.until}, "no service, and ended"
        for one, before in self.submitted_before.items():
            late = self.until[one] & {*self.run.submitted} - before
            assert not late, f"{late} began after {one} had been ended"
        assert self.run.completed or self.run.stalled


@pytest.mark.slow
@settings(deadline=None)
@given(workflows(), st.integers(0, 2**32))
def test_whatever_happens_a_service_lives_as_long_as_it_is_needed_and_no_longer(stages, seed):
    names = [one.split()[2] for one in stages]
    judgement = judged(definition(*stages), *names, request={})
    assume(judgement.runnable)
    until = {
        f"1/{one.id}": {f"1/{served.stage}" for served in one.until}
        for one in judgement.definition.stages
        if one.until
    }
    run = Scenario(graph_of(judgement), start_jobs=False)
    oracle = Oracle(run, until, random.Random(seed))
    while oracle.plays_on():
        pass
    oracle.judges_the_end()
