"""Services of SIP definitions under their scheduler: jobs, crashes, commands (R011-10)."""

from pathlib import Path

import pytest

from tests.kit.driven_run import DrivenRun
from tests.support.sips import definition, stage
from tidewheel.core.operator import verbs

pytestmark = [pytest.mark.slow, pytest.mark.req("R011-10")]
USED = definition(stage("engine", more="until: use"), stage("use", "engine running"))
SCRIPT = "true\n"


@pytest.fixture
def run(tmp_path: Path):
    made = []

    def make(text: str = USED, **options: object) -> DrivenRun:
        names = [line.split()[2] for line in text.splitlines() if line.startswith("  - id:")]
        files = {f"stages/{name}/1.0.0/script.sh": SCRIPT for name in names}
        made.append(DrivenRun(tmp_path, {"flow-1.0.0.yaml": text, **files}, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_the_job_of_a_service_is_ended_with_the_batch_that_learns_that_it_is_not_needed(run):
    flow = run().starts("1/engine").starts("1/use").ends("1/use")
    assert flow.status == "running"
    assert "engine is being ended: use has ended" in flow.log
    flow.fails("1/engine")  # its processes end by a signal
    assert flow.status == "completed"
    assert "engine/01:running] => succeeded" in flow.log
    assert "ERROR" not in flow.log and "job killed" not in flow.log


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_scheduler_that_dies_forgets_neither_a_service_nor_that_it_was_let_go(run, when):
    flow = run().starts("1/engine").starts("1/use")
    if when == "before":
        flow.crash()
    flow.ends("1/use")
    if when == "after":
        flow.crash()
    assert flow.fails("1/engine").status == "completed"


def test_a_service_that_ends_by_itself_fails_and_the_run_says_before_whom(run):
    flow = run().starts("1/engine").starts("1/use").ends("1/engine")
    assert "engine ended before the end of use, for which it runs" in flow.log
    flow.fails("1/use").waits(0.1)
    assert flow.view.status == "stalled"
    assert "engine failed before the end of use, for which it runs" in flow.view.reason


def test_a_run_that_is_killed_has_no_service_that_succeeded(run):
    flow = run().starts("1/engine").starts("1/use")
    flow.gives(verbs.Stop(mode="kill"))
    flow.fails("1/use").fails("1/engine")
    assert flow.status == "stopped"
    assert "=> succeeded" not in flow.log


def test_a_service_of_a_run_that_is_only_played_ends_when_it_is_let_go(run):
    flow = run(mode="simulation").waits(60.0)
    assert flow.status == "completed"
