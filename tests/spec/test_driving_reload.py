"""Reload while jobs run: what a definition no longer has is not forgotten (SEMANTICS §8)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from tests.kit.driven_run import DrivenRun
from tidewheel.core.operator import verbs
from tidewheel.core.operator.registry import NewWorkflow
from tidewheel.errors import Refused
from tidewheel.services.run_service import RunService

RUNTIME = """
[runtime]
    [[a]]
        init-script = true
        execution retry delays = PT1M
        [[[events]]]
            execution timeout = PT1M
        [[[outputs]]]
            x = the file is there
    [[b, c, d]]
"""


def definition(graph: str) -> str:
    return (
        f"[scheduling]\ncycling mode = integer\nfinal cycle point = 9\n[[graph]]\n{graph}\n"
        f"{RUNTIME}"
    )


@pytest.fixture
def flow(tmp_path: Path):
    made = []

    def make(graph: str, **options: object) -> DrivenRun:
        made.append(DrivenRun(tmp_path, definition(graph), **options))
        return made[-1]

    yield make
    for run in made:
        run.close()


def reload(run: DrivenRun, graph: str) -> DrivenRun:
    run.gives(verbs.Reload(definition=run.reads(definition(graph))))
    return run


def failures(run: DrivenRun) -> list[object]:
    return [one.facts["summary"] for one in run.reports if one.event == "step.failed"]


@pytest.mark.parametrize("crashes", [False, True])
def test_the_job_of_a_removed_task_is_heard_to_its_end(flow, crashes):
    run = reload(flow("R1 = a & b => d"), "R1 = b => d")
    if crashes:
        run.crash()
    run.starts("1/a").says("1/a", output="started").says("1/a", "the file is there").waits(100)
    run.ends("1/b").ends("1/d")
    assert (run.status, run.running) == ("running", ["1/a/1"])
    assert run.ends("1/a").status == "completed"
    assert not failures(run)


@pytest.mark.parametrize("crashes", [False, True])
def test_the_job_of_a_removed_task_can_be_killed_and_is_not_tried_again(flow, crashes):
    run = reload(flow("R1 = a & b => d"), "R1 = b => d")
    if crashes:
        run.crash()
    assert run.gives(verbs.Kill(ids=("1/a",)))["killed"] == ["1/a"]
    assert run.fails("1/a").running == ["1/b/1"]
    assert run.ends("1/b").ends("1/d").status == "completed"
    assert not failures(run)


@pytest.mark.parametrize("crashes", [False, True])
def test_a_removed_task_that_fails_keeps_nobody_waiting(flow, crashes):
    run = reload(flow("R1 = a & b => d"), "R1 = b => d")
    if crashes:
        run.crash()
    run.fails("1/a")
    assert run.ends("1/b").ends("1/d").status == "completed"


def test_a_simulated_job_of_a_removed_task_ends(flow):
    run = reload(flow("R1 = a & b => d", mode="simulation"), "R1 = b => d")
    run.waits(10).waits(10)
    assert (run.status, failures(run)) == ("completed", [])


def test_a_run_that_remembers_removed_tasks_is_reloaded_after_a_restart(flow):
    run = reload(flow("R1 = a => b => d").ends("1/a"), "R1 = b => d").crash()
    reload(run, "R1 = b => d => c")
    assert run.ends("1/b").ends("1/d").ends("1/c").status == "completed"
    assert not failures(run)


@pytest.mark.parametrize("crashes", [False, True])
def test_a_task_that_was_removed_and_comes_back_goes_on(flow, crashes):
    run = reload(flow("P1 = b\nR1 = d"), "R1 = d")
    run.ends("1/b", "2/b", "3/b", "4/b", "5/b")
    if crashes:
        run.crash()
    reload(run, "P1 = b\nR1 = d")
    assert run.ends("1/d").running == ["7/b/1", "8/b/1", "9/b/1"]


def test_a_reload_whose_files_find_no_room_is_refused_and_the_run_goes_on(flow):
    run = flow("R1 = b => d")
    (run.home / "runs/flow/run1/flow.cylc").unlink()
    (run.home / "runs/flow/run1/flow.cylc").mkdir()
    with pytest.raises(Refused, match="not reloaded"):
        reload(run, "R1 = b => c")
    assert run.ends("1/b").ends("1/d").status == "completed"


# ---- how a definition came in counts whenever it is read again ----

# Behaves when it is rendered first, and strikes when somebody trusts it.
STRIKES = """#!jinja2
{% set out = "nothing" %}
{% if environ %}
{% from "subprocess" import getoutput %}
{% set out = getoutput("echo STRUCK") %}
{% endif %}
[meta]
    title = {{ out }} {{ environ.get("DATABASE_PASSWORD", "unseen") }}
[scheduling]
    [[graph]]
        R1 = a => b
[runtime]
    [[a, b]]
"""


def rewritten(run: DrivenRun, text: str) -> DrivenRun:
    """As a job does it that writes into the folder of its run."""
    (run.directory / "flow.cylc").write_text(text)
    return run


@pytest.mark.slow
@pytest.mark.parametrize("before", ["nothing", "a crash", "a stop"])
def test_h1_a_definition_from_the_network_stays_a_stranger_when_it_is_read_again(
    tmp_path, monkeypatch, before
):
    """H1: at once, by the scheduler after a restart, and in a run that is carried on."""
    monkeypatch.setenv("DATABASE_PASSWORD", "canary")
    with closing(DrivenRun(tmp_path, STRIKES, trusted=False)) as run:
        if before == "a crash":
            run.crash()
        elif before == "a stop":
            run.gives(verbs.Stop(mode="now"))
            run.carries_on().waits(1)
        run.gives(verbs.Reload())
        assert "title = nothing unseen" in run.definition.text
        filters = run.directory / "Jinja2Filters"
        filters.mkdir()
        (filters / "shout.py").write_text("def shout(text):\n    return 'STRUCK'\n")
        rewritten(run, STRIKES.replace("{{ out }}", "{{ out | shout }}"))
        with pytest.raises(Refused, match="shout"):
            run.gives(verbs.Reload())
        assert run.ends("1/a").ends("1/b").status == "completed"


@pytest.mark.slow
def test_a_definition_from_its_owners_folder_may_run_its_code_again(tmp_path, monkeypatch):
    monkeypatch.setenv("DATABASE_PASSWORD", "canary")
    with closing(DrivenRun(tmp_path, STRIKES)) as run:
        rewritten(run, STRIKES.replace("R1 = a => b", "R1 = a => b => c") + "[[c]]\n")
        run.gives(verbs.Reload())
        assert "title = STRUCK canary" in run.definition.text
        assert run.ends("1/a").ends("1/b").running == ["1/c/1"]


@pytest.mark.slow
def test_a_run_that_once_was_a_strangers_is_never_trusted_again(tmp_path, monkeypatch):
    """What the stranger left in the run's folder lies there still."""
    monkeypatch.setenv("DATABASE_PASSWORD", "canary")
    with closing(DrivenRun(tmp_path, STRIKES, trusted=False)) as run:
        run.trusted = True
        run.gives(verbs.Reload(definition=run.reads(STRIKES)))
        assert "title = STRUCK canary" in run.definition.text  # as its owner rendered it
        run.gives(verbs.Reload())
        assert "title = nothing unseen" in run.definition.text


@pytest.mark.parametrize(
    ("registrants", "seen"),
    [
        ([("team-a",)], ("team-a",)),
        ([("team-a",), ("team-b",)], ("team-a", "team-b")),
        ([("team-a",), None], None),
        ([None], None),
        ([], None),
    ],
)
def test_h4_a_run_that_goes_on_with_a_registered_version_sees_what_its_registrant_sees(
    flow, registrants, seen
):
    """Else who may see everything, and reloads, would lend that to code of others."""
    run = flow("R1 = a")
    digest = run.reads(definition("R1 = a => b"))

    async def register(store, _):
        kept = await store.definition(digest)
        for number, sees in enumerate(registrants):
            one = NewWorkflow(
                name=kept.workflow,
                version=f"{number}",
                definition=kept,
                runnable=True,
                sees=sees,
            )
            await store.register([one])

    run.look(register)
    assert run.view.sees is None
    run.gives(verbs.Reload(definition=digest))
    assert run.view.sees == seen


def tried(run: DrivenRun, graph: str) -> list[str]:
    """What a dry run of a reload would say."""
    said = {"verb": "reload", "definition": run.reads(definition(graph))}
    arguments = {"run": run.view.name, "command": said}
    found = run.look(lambda store, _: RunService(store, run.home).look("dry-run", arguments))
    return cast("list[str]", found["notices"])


def test_a_reload_says_which_tasks_the_definition_has_no_more_and_what_is_dropped(flow):
    """Or somebody who renames a task takes a run for complete that never did its work."""
    run = flow("R1 = a & b => d")
    run.ends("1/a")
    gone = "the new definition does not have d"
    dropped = "1/d is dropped and will not run: the new definition does not have it"
    assert tried(run, "R1 = a & b => c") == [gone, dropped]
    answer = run.gives(verbs.Reload(definition=run.reads(definition("R1 = a & b => c"))))
    assert answer["notices"] == [gone, dropped]
    assert f"WARNING - {dropped}" in run.log
    assert f"INFO - {gone}" in run.log


def test_a_reload_that_drops_nothing_says_nothing(flow):
    run = flow("R1 = a & b => d").ends("1/a")
    assert run.gives(verbs.Reload(definition=run.reads(definition("R1 = a => d"))))[
        "notices"
    ] == ["the new definition does not have b"]
    assert "dropped" not in run.log
