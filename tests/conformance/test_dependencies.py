"""Tasks that wait for others: edges at submission, what meets them, what kills them."""

import pytest

from tests.conformance.door import messages, new_task
from tidewheel.core.queue.requests import End, Ending
from tidewheel.core.queue.task import Need
from tidewheel.errors import DependencyCycle, InvalidTask, UnknownDependency, WrongStatus


def edge_states(store, task_id):
    return {(e.parent, e.child, e.output): e.state.value for e in store.edges(task_id)}


@pytest.mark.req("R003-14", "R003-16", "R003-72", "R003-11")
def test_a_task_waits_for_all_it_needs_and_is_ready_after_the_last(store, clock):
    store.put("a", "b")
    store.put("c", needs=["a", "b"])
    assert (store.status("c"), store.get("c").open_needs) == ("waiting", 2)
    store.run_through("a")
    assert (store.status("c"), store.get("c").open_needs) == ("waiting", 1)
    clock.advance(1)
    store.run_through("b")
    view = store.get("c")
    assert (view.status, view.open_needs, view.updated_at) == ("ready", 0, clock.now)
    assert store.signals("c") == [None, "satisfy"]
    assert set(edge_states(store, "c").values()) == {"met"}
    assert store.taken(9) == ["c"]


@pytest.mark.req("R003-5", "R003-14", "R003-17", "R003-72")
def test_continuations_are_the_same_edges_said_by_the_parent(store):
    store.put("x", "y", armed=False)
    store.put("a", continuations=("x", "y"))
    assert store.statuses("x", "y") == ["waiting", "waiting"]
    assert edge_states(store, "a") == {
        ("a", "x", "succeeded"): "open",
        ("a", "y", "succeeded"): "open",
    }
    store.run_through("a")
    assert store.statuses("x", "y") == ["ready", "ready"]


@pytest.mark.req("R003-15")
def test_a_release_counts_once_however_often_it_is_reported(store):
    store.put("a", "b")
    store.put("c", needs=["a", "b"])
    held = store.hold("a")
    store.finish(held)
    for _ in range(2):
        with pytest.raises(WrongStatus):
            store.finish(held)
    assert (store.status("c"), store.get("c").open_needs) == ("waiting", 1)


@pytest.mark.req("R003-71")
@pytest.mark.parametrize("ending", ["failed", "aborted"])
def test_a_failure_without_retries_cancels_what_depends_on_it(store, ending):
    store.put("a")
    store.submit_chain("a", "b", "c")
    store.run_through("a", ending=ending)
    assert store.statuses("a", "b", "c") == ["failed", "cancelled", "cancelled"]
    assert edge_states(store, "b")["a", "b", "succeeded"] == "dead"


@pytest.mark.req("R003-70")
def test_a_failure_with_retries_left_keeps_children_waiting(store):
    store.put("a", max_retries=1)
    store.put("b", needs=["a"])
    store.run_through("a", ending="failed")
    assert store.statuses("a", "b") == ["ready", "waiting"]
    store.run_through("a")
    assert store.status("b") == "ready"


@pytest.mark.parametrize("how", ["time_out", "lapse_out"])
def test_a_task_that_the_monitor_ends_cancels_its_children_too(store, clock, how):
    store.put("a", timeout_seconds=5 if how == "time_out" else None, max_lapses=0)
    store.put("b", needs=["a"])
    store.hold("a")
    clock.advance(11)
    assert store.lapse() == [("a", how)]
    assert store.status("b") == "cancelled"


@pytest.mark.req("R003-27")
def test_in_a_diamond_the_last_task_runs_once_after_both_parents(store):
    store.put("top")
    store.put("left", "right", needs=["top"])
    store.put("bottom", needs=["left", "right"])
    store.run_through("top", "left")
    assert store.status("bottom") == "waiting"
    store.run_through("right")
    assert store.taken(9) == ["bottom"]
    assert store.signals("bottom") == [None, "satisfy", "claim"]


@pytest.mark.req("R003-19")
def test_a_task_with_nothing_to_run_releases_its_children_and_ends(store):
    store.put("child", armed=False)
    store.put("join", spec=None, continuations=("child",))
    view = store.get("join")
    assert (view.status, view.progress, view.owner) == ("succeeded", 1.0, None)
    assert store.signals("join") == [None, "skip"]
    assert store.status("child") == "ready"


@pytest.mark.req("R003-20", "R003-61")
def test_so_does_one_that_becomes_ready_later(store):
    store.put("armed later", spec=None, armed=False)
    store.put("a")
    store.put("after a", spec=None, needs=["a"])
    store.put("child", needs=["armed later", "after a"])
    assert store.arm("armed later").status == "succeeded"
    assert store.status("after a") == "waiting"
    store.run_through("a")
    assert store.statuses("after a", "child") == ["succeeded", "ready"]
    assert store.signals("after a") == [None, "skip"]


@pytest.mark.req("R003-21")
def test_chains_of_empty_tasks_run_through_to_their_end(store):
    store.put("first", spec=None, armed=False)
    names = [f"e{n}" for n in range(20)]
    store.submit_chain("first", *names, spec=None)
    store.put("last", needs=[names[-1]])
    assert store.status("last") == "waiting"
    store.arm("first")
    assert store.statuses("first", *names) == ["succeeded"] * 21
    assert store.status("last") == "ready"
    chain = [new_task("c0", spec=None)]
    chain += [new_task(f"c{n}", spec=None, needs=[f"c{n - 1}"]) for n in range(1, 20)]
    store.submit(chain)
    assert store.status("c19") == "succeeded"


def test_edges_within_one_submission_may_be_told_in_any_order(store):
    store.submit([new_task("c", needs=["b"]), new_task("b", needs=["a"]), new_task("a")])
    assert store.statuses(*"abc") == ["ready", "waiting", "waiting"]
    store.run_through(*"abc")
    assert store.statuses(*"abc") == ["succeeded"] * 3


def test_an_edge_said_by_both_its_ends_is_one_edge(store):
    store.submit([new_task("a", continuations=("b",)), new_task("b", needs=["a"])])
    assert len(store.edges("a")) == 1
    store.run_through("a")
    assert store.status("b") == "ready"


# What a child does when its parent ended like the column and it needs the row.
LATE = """
              succeeded  failed     cancelled
    succeeded ready      cancelled  cancelled
    failed    cancelled  ready      cancelled
    cancelled cancelled  cancelled  ready
    made      ready      ready      ready
    other     cancelled  cancelled  cancelled
"""


def late_cases():
    columns, *rows = (line.split() for line in LATE.strip().splitlines())
    return [
        (output, ending, status)
        for output, *statuses in rows
        for ending, status in zip(columns, statuses, strict=True)
    ]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("output", "ending", "status"), late_cases())
def test_a_child_becomes_what_its_parents_end_means_for_it(store, output, ending, status, when):
    """The same whether the child is submitted before or after that end."""
    need = Need(task_id="parent", output=output)
    store.put("parent")
    if when == "before":
        store.put("child", needs=[need])
    held = store.hold("parent")
    store.tell(held, messages=messages("half way", output="made"))
    if ending == "cancelled":
        store.cancel(["parent"])
        ending = "failed"
    store.finish(held, ending)
    if when == "after":
        store.put("child", needs=[need])
    assert store.status("child") == status


def test_a_custom_output_releases_a_child_while_its_parent_still_runs(store):
    store.put("a")
    store.put("early", needs=[Need(task_id="a", output="half")])
    store.put("late", needs=["a"])
    held = store.hold("a")
    store.tell(held, messages=messages("half", output="half"))
    assert store.statuses("a", "early", "late") == ["running", "ready", "waiting"]
    done = End(ending=Ending.SUCCEEDED)
    store.put("last", needs=[Need(task_id="a", output="end")])
    store.tell(held, messages=messages("end", first=2, output="end"), end=done)
    assert store.statuses("late", "last") == ["ready", "ready"]


def test_an_output_of_an_earlier_attempt_stays_made(store):
    store.put("a", max_retries=1)
    held = store.hold("a")
    store.tell(held, messages=messages("half", output="half"))
    store.finish(held, "failed")
    store.put("b", needs=[Need(task_id="a", output="half")])
    assert store.status("b") == "ready"


def test_a_job_cannot_say_that_it_succeeded_while_it_runs(store):
    store.put("a")
    store.put("b", needs=["a"])
    held = store.hold("a")
    store.tell(held, messages=messages("!", output="succeeded"))
    assert store.status("b") == "waiting"
    store.finish(held, "failed")
    assert store.status("b") == "cancelled"


def test_who_needs_that_a_task_finished_waits_for_its_end_whatever_its_job_says(store):
    store.put("a", max_retries=1)
    store.put("b", needs=[Need(task_id="a", output="finished")])
    held = store.hold("a")
    store.tell(held, messages=messages("!", output="finished"))
    store.put("late", needs=[Need(task_id="a", output="finished")])
    assert store.statuses("b", "late") == ["waiting", "waiting"]
    store.finish(held, "failed")
    assert store.statuses("a", "b", "late") == ["ready", "waiting", "waiting"]
    store.finish(store.hold("a"), "failed")
    assert store.statuses("a", "b", "late") == ["failed", "ready", "ready"]


def test_a_child_that_waits_for_a_cancel_runs_when_the_job_has_ended(store):
    store.put("a")
    store.put("clean up", needs=[Need(task_id="a", output="cancelled")])
    held = store.hold("a")
    store.cancel(["a"])
    assert store.status("clean up") == "waiting"
    store.put("late", needs=[Need(task_id="a", output="cancelled")])
    store.put("too late", needs=["a"])
    assert store.statuses("late", "too late") == ["waiting", "cancelled"]
    store.finish(held)
    assert store.statuses("clean up", "late") == ["ready", "ready"]


def test_a_task_may_need_two_outputs_of_one_parent(store):
    store.put("a")
    needs = [Need(task_id="a", output="half"), Need(task_id="a")]
    store.put("b", needs=needs)
    held = store.hold("a")
    store.tell(held, messages=messages("half", output="half"))
    assert (store.status("b"), store.get("b").open_needs) == ("waiting", 1)
    store.finish(held)
    assert store.status("b") == "ready"


@pytest.mark.req("R003-5")
@pytest.mark.parametrize("field", ["needs", "continuations"])
def test_an_edge_to_a_task_that_is_not_there_is_refused(store, field):
    store.put("known", armed=False)
    before = store.everything()
    with pytest.raises(UnknownDependency) as refused:
        store.put("a", **{field: ("x", "known", "y")})
    assert (refused.value.task_id, refused.value.missing) == ("a", ("x", "y"))
    assert "'x', 'y'" in str(refused.value)
    assert store.everything() == before


@pytest.mark.req("R003-18", "R003-14")
@pytest.mark.parametrize("status", ["ready", "running", "succeeded", "cancelled"])
def test_creation_takes_on_every_continuation_or_none(store, status):
    store.put("free", armed=False)
    store.put("busy")
    if status in ("running", "succeeded"):
        held = store.hold("busy")
    if status == "succeeded":
        store.finish(held)
    if status == "cancelled":
        store.cancel(["busy"])
    before = store.everything()
    with pytest.raises(WrongStatus) as refused:
        store.put("a", continuations=("free", "busy"))
    assert (refused.value.task_id, refused.value.status) == ("busy", status)
    assert refused.value.allowed == ("waiting",)
    assert store.everything() == before


@pytest.mark.req("R003-26")
def test_a_circle_is_refused_with_its_path(store):
    store.put("c", armed=False)
    store.put("b", armed=False, continuations=("c",))
    before = store.everything()
    with pytest.raises(DependencyCycle) as refused:
        store.put("a", needs=["c"], continuations=("b",))
    path = refused.value.path
    assert path[0] == path[-1]
    assert set(path) == set("abc")
    assert " => ".join(path) in str(refused.value)
    with pytest.raises(DependencyCycle):
        store.submit([new_task("x", needs=["y"]), new_task("y", needs=["x"])])
    with pytest.raises(InvalidTask):
        store.put("x", needs=["x"])
    assert store.everything() == before


@pytest.mark.req("R003-26", "R002-30")
def test_a_circle_in_a_batch_refuses_those_on_it_and_stores_the_rest(store):
    batch = [
        new_task("good"),
        new_task("x", needs=["y"]),
        new_task("y", needs=["x"]),
        new_task("on x", needs=["x"]),
        new_task("fine", needs=["good"]),
    ]
    answers = store.submit(batch, atomic=False)
    assert [answer.created for answer in answers] == [True, False, False, False, True]
    assert any(isinstance(answer.refused, DependencyCycle) for answer in answers)
    assert sorted(store.listed()) == ["fine", "good"]
