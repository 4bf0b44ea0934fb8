"""`tidewheel register`, `workflows` and `run NAME` through a server."""

import shutil
from contextlib import ExitStack

import pytest

from tests.support.workflow_folders import FLOW, PYTHON, put, sip_files


@pytest.fixture
def crew(there):
    """A scheduler and a worker at the machine with the store."""
    with ExitStack() as stack:
        quick = {"TIDEWHEEL_SCHEDULER_INTERVAL_SECONDS": "0.1"}
        stack.enter_context(there.started("scheduler", **quick))
        stack.enter_context(there.started("worker", "--queue", "run:*"))
        yield


@pytest.mark.req("R004-1", "R004-5", "R004-10")
@pytest.mark.usefixtures("crew")
def test_a_workflow_is_registered_from_here_and_run_there(here, there):
    folder = put(here.folder / "workflows", sip_files())
    made = here("register", "workflows")
    assert made.out == "vis/1.0.0: registered; it can run, given site\n", made.err
    shutil.rmtree(folder)
    assert here("workflows", "--json").json == there("workflows", "--json").json
    missing = here("run", "vis")
    assert missing.status == 2 and "stage a needs the parameter 'site'" in missing.err
    ran = here("run", "vis", "-p", "site=north", "-p", 'a={"nodes": 7}')
    assert ran.status == 0, ran.out + ran.err
    assert "vis/run1 completed" in ran.out and "changes nothing" not in ran.err
    assert here("log", "vis/run1", "1/a").out == "at north with 7\n"
    assert here("workflows", "remove", "vis").out == "removed vis/1.0.0\n"
    assert here("show", "vis/run1", "--json").json["run"]["status"] == "completed"
    unknown = here("run", "viz")
    assert unknown.status == 2 and "nor a registered workflow" in unknown.err


def test_refusals_have_the_same_words_from_here(here, there):
    folder = put(here.folder / "workflows", sip_files())
    put(there.folder / "workflows", sip_files())
    (folder / "stages/b/1.0.0/script.sh").unlink()
    shutil.rmtree(there.folder / "workflows/stages/b")
    put(there.folder / "workflows/stages/b/1.0.0", {"notes": "x"})
    put(folder, {"stages/b/1.0.0/notes": "x"})
    far, near = here("register", "workflows"), there("register", "workflows")
    assert (far.status, far.err) == (near.status, near.err) == (2, far.err)
    assert "there is no docker_compose.yaml" in far.err
    python = put(here.folder / "programs", {"cycle.py": PYTHON})
    refused = here("register", str(python / "cycle.py"))
    assert refused.status == 2 and "a server takes no definition in Python" in refused.err


@pytest.mark.usefixtures("crew")
def test_a_flow_cylc_is_run_by_name_and_the_run_is_followed_again_by_its_own(here):
    put(here.folder / "tide", {"flow.cylc": FLOW})
    assert here("register", "tide", "--name", "ebb").status == 0
    shutil.rmtree(here.folder / "tide")
    begun = here("run", "ebb", "--detach", "--json")
    assert (begun.json["run"], begun.json["is_new"]) == ("ebb/run1", True)
    followed = here("run", "ebb/run1")
    assert followed.status == 0, followed.err
    second = here("run", "ebb")
    assert "ebb/run2 starts" in second.out, second.out + second.err
