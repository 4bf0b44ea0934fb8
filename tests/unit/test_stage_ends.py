"""What follows from what is seen of a stage's containers."""

import pytest

from tidewheel.core.queue.requests import Ending
from tidewheel.core.queue.task import TaskError, TaskId
from tidewheel.runners.containers.compose_build import read_plan
from tidewheel.runners.containers.engines import ServiceFacts, SwarmTask, part_of
from tidewheel.runners.containers.job import read_end
from tidewheel.runners.containers.outcome import (
    KeepWaiting,
    Over,
    ProjectSeen,
    Startable,
    judge,
)
from tidewheel.runners.containers.project import (
    Condition,
    Phase,
    ProjectPart,
    ProjectPlan,
    Tags,
)

TAGS = Tags(runner="swarm", project="p", store="s", task_id=TaskId("t"), attempt=1)
NOTHING_SAID = {}.get


def part(service, phase, exit_status=None, **facts):
    return ProjectPart(
        id=f"id-{service}", service=service, phase=phase, exit_status=exit_status, **facts
    )


def running(service):
    return part(service, Phase.RUNNING)


def ended(service, exit_status, **facts):
    return part(service, Phase.ENDED, exit_status, **facts)


def verdict(*parts, needs=None, expected=None, **seen):
    plan = ProjectPlan(
        tags=TAGS,
        parts=dict.fromkeys(expected or {one.service for one in parts}, 1),
        needs=needs or {},
        prefix="",
    )
    return judge(
        ProjectSeen(parts=parts, plan=plan, **seen), lambda name: NOTHING_SAID(name, "")
    )


def test_a_stage_has_succeeded_when_all_of_it_ended_well():
    assert verdict(ended("a", 0), running("b")) == KeepWaiting()
    assert verdict(ended("a", 0), ended("b", 0)).end.ending is Ending.SUCCEEDED


def test_the_first_that_failed_is_the_reason():
    late = ended("late", 1, ended_at="2026-01-02")
    early = ended("early", 2, ended_at="2026-01-01")
    end = verdict(late, running("b"), early).end
    assert end.exit_status == 2
    assert end.error.description == "service early: exit status 2"


@pytest.mark.parametrize("condition", list(Condition))
def test_a_service_is_started_when_what_it_needs_is_there(condition):
    needs = {"b": {"a": condition}}
    waits = part("b", Phase.CREATED)
    fulfilled = {
        Condition.STARTED: running("a"),
        Condition.HEALTHY: part("a", Phase.RUNNING, is_healthy=True),
        Condition.DONE: ended("a", 0),
    }[condition]
    assert verdict(fulfilled, waits, needs=needs) == Startable((waits,))
    first = part("a", Phase.CREATED)
    assert verdict(first, waits, needs=needs) == Startable((first,))


def test_a_stage_ends_when_a_service_waits_for_the_health_of_one_that_has_ended():
    needs = {"b": {"a": Condition.HEALTHY}, "c": {"b": Condition.STARTED}}
    waits, last = part("b", Phase.CREATED), part("c", Phase.CREATED)
    end = verdict(ended("a", 0), waits, last, needs=needs).end
    assert (end.ending, end.error.code) == (Ending.FAILED, "start")
    assert end.error.description.startswith("service b never starts: service a, ")
    # Also while another runs, which may wait for b in turn.
    assert verdict(ended("a", 0), waits, running("d"), needs=needs).end == end
    # The engine was away: a may have been healthy, or b was to be started.
    away = verdict(ended("a", 0), waits, needs=needs, engine_was_away=True)
    told = verdict(ended("a", 0), waits, needs=needs, started=frozenset({waits.id}))
    assert away.end.ending is told.end.ending is Ending.YIELDED


def test_a_stage_goes_on_while_what_it_waits_for_may_still_happen():
    needs = {"b": {"a": Condition.HEALTHY}, "c": {"b": Condition.STARTED}}
    waits, last = part("b", Phase.CREATED), part("c", Phase.CREATED)
    assert verdict(running("a"), waits, last, needs=needs) == KeepWaiting()
    # c can start in this moment, although nothing runs.
    assert verdict(ended("a", 0), ended("b", 0), last, needs=needs) == Startable((last,))
    assert verdict(part("a", Phase.PENDING), ended("d", 0)) == KeepWaiting()
    assert verdict(part("a", Phase.PREPARING), ended("d", 0)) == KeepWaiting()


def test_services_that_wait_for_each_other_end_their_stage():
    needs = {"a": {"b": Condition.STARTED}, "b": {"a": Condition.STARTED}}
    both = part("a", Phase.CREATED), part("b", Phase.CREATED)
    end = verdict(*both, ended("c", 0), needs=needs).end
    assert end.error.description == ("service a never starts: what it waits for does not start")


def test_what_the_engine_ended_while_it_was_away_goes_back():
    for status in (137, 143, 255):
        seen = verdict(ended("a", status), engine_was_away=True)
        assert seen.end.ending is Ending.YIELDED
        assert verdict(ended("a", status)).end.ending is Ending.FAILED
    assert verdict(expected={"a"}, engine_was_away=True).end.ending is Ending.YIELDED


def test_a_start_that_the_engine_has_forgotten_is_not_repeated():
    forgotten = part("a", Phase.CREATED)
    assert verdict(forgotten) == Startable((forgotten,))
    seen = verdict(forgotten, started=frozenset({forgotten.id}))
    assert seen.end.ending is Ending.YIELDED


def test_a_failure_of_its_own_is_one_even_if_the_engine_was_away():
    assert verdict(ended("a", 3), engine_was_away=True).end.exit_status == 3
    starved = ended("a", 137, out_of_memory=True)
    assert verdict(starved, engine_was_away=True).end.error.code == "out_of_memory"


def test_a_container_that_somebody_removed_is_missed():
    end = verdict(running("a"), expected={"a", "b"}).end
    assert end.error.code == "vanished"
    assert "service b" in end.error.description


def test_a_stage_that_is_asked_to_end_is_over_when_nothing_of_it_runs():
    assert verdict(running("a"), stop_grace_seconds=5.0) == KeepWaiting()
    killed = verdict(ended("a", 137), stop_grace_seconds=5.0).end
    assert killed.error.description.endswith("it did not end within 5 s of SIGTERM")
    assert killed.exit_status is None
    assert verdict(ended("a", 143), stop_grace_seconds=5.0).end.exit_status == 143
    assert verdict(ended("a", 0), stop_grace_seconds=5.0).end.ending is Ending.SUCCEEDED
    unbegun = verdict(ended("a", 0), part("b", Phase.CREATED), stop_grace_seconds=5.0)
    assert isinstance(unbegun, Over) and unbegun.end.error.code == "stopped"


def swarm_part(*states, wanted=1):
    facts = ServiceFacts(name="p_a", service="a", tags=TAGS, wanted=wanted)
    rows = [
        SwarmTask.read(
            {
                "ID": f"{number}",
                "Name": f"p_a.{number}",
                "CurrentState": f"{state} 2 seconds ago",
                "DesiredState": desired,
                "Error": f'"{error}"' if error else "",
                "Node": "n1" if state != "Pending" else "",
            }
        )
        for number, (state, desired, error) in enumerate(states)
    ]
    return part_of(facts, rows)


def test_a_service_of_a_swarm_is_what_its_tasks_are():
    no_node = "no suitable node (scheduling constraints not satisfied on 2 nodes)"
    assert swarm_part().phase is Phase.PENDING
    pending = swarm_part(("Pending", "Running", no_node))
    assert pending.phase is Phase.PENDING
    assert pending.error.startswith(f"{no_node}; nodes get labels by: docker node update")
    for state in ("Assigned", "Accepted", "Preparing", "Ready", "Starting"):
        preparing = swarm_part((state, "Running", ""))
        assert (preparing.phase, preparing.has_begun) == (Phase.PREPARING, False)
    some = swarm_part(("Preparing", "Running", ""), ("Running", "Running", ""), wanted=2)
    assert (some.phase, some.has_begun) == (Phase.RUNNING, True)
    done = ("Complete", "Shutdown", "")
    assert swarm_part(done).ended_well
    assert swarm_part(done, ("Running", "Running", ""), wanted=2).phase is Phase.RUNNING
    assert swarm_part(done, done, wanted=2).ended_well
    failed = swarm_part(("Failed", "Shutdown", "task: non-zero exit (3)"))
    assert (failed.phase, failed.exit_status, failed.error) == (Phase.ENDED, 3, "")


def test_an_image_that_a_node_has_not_and_a_node_that_is_gone_are_named():
    missing = swarm_part(("Rejected", "Shutdown", "No such image: x:1"))
    assert "could not be fetched: No such image: x:1" in missing.error
    assert missing.error.endswith("(node n1)")
    lost = swarm_part(("Running", "Shutdown", ""))
    assert (lost.phase, lost.error) == (Phase.RUNNING, "its node n1 does not answer")


def test_a_stage_that_a_worker_of_an_earlier_version_left_can_be_adopted(tmp_path):
    tags = '"runner": "compose", "project": "p", "store": "s", "task": "t", "attempt": 2'
    rest = '"prefix": "#x ", "parts": {"web": 1}, "needs": {"web": {"db": "service_started"}}'
    (tmp_path / "project.json").write_text(f"{{{tags}, {rest}}}")
    plan = read_plan(tmp_path)
    assert plan is not None
    assert (plan.project, plan.tags.task_id, plan.tags.attempt) == ("p", "t", 2)
    assert plan.parts == {"web": 1}


def test_an_end_that_a_worker_of_an_earlier_version_left_is_read(tmp_path):
    (tmp_path / "job.end").write_text(
        '{"ending": "failed", "exit_status": 3, "error": ["exit", "it failed", "{}"], '
        '"values": null}'
    )
    end = read_end(tmp_path)
    assert end is not None
    assert (end.exit_status, end.error) == (
        3,
        TaskError(code="exit", description="it failed", args="{}"),
    )


def test_a_part_that_never_ran_has_not_begun():
    assert not part("a", Phase.CREATED).has_begun
    assert not part("a", Phase.PENDING).has_begun
    assert not ended("a", None, error="no such program").has_begun
    assert ended("a", 1).has_begun and ended("a", 0).has_begun


def test_a_stage_that_is_stopped_while_a_node_prepares_it_is_not_over_yet():
    assert verdict(part("a", Phase.PREPARING), stop_grace_seconds=1.0) == KeepWaiting()
