"""`tidewheel register`, `workflows` and `run NAME` through a server."""

import shutil
from contextlib import ExitStack

import pytest

from tests.support.workflow_folders import FLOW, put, sip_files


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
    assert made.out == "vis/1.0.0: registered; it can run; each request must give site\n", (
        made.err
    )
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
    python = put(here.folder / "programs", {"cycle.py": "import nothing_there\n"})
    refused = here("register", str(python / "cycle.py"))
    assert refused.status == 2 and "No module named 'nothing_there'" in refused.err


FUNCTIONS = """
import os
from pathlib import Path
from tidewheel import Workflow
from scale import SCALE

flow = Workflow("etl")


@flow.task
def fetch(count: int) -> list[int]:
    Path(os.environ["SEEN"]).open("a").write("job\\n")
    return list(range(count))


@flow.task(environment={"WHO": "a 'job'"})
def total(rows: list[int], scale: int = 1) -> int:
    print("the total is", sum(rows) * scale, "says", os.environ["WHO"])


total(fetch(5), scale=SCALE)
Path(os.environ.get("READ_BY", os.devnull)).open("a").write(f"{os.getpid()}\\n")
"""


@pytest.mark.req("R007-12", "R007-3")
@pytest.mark.usefixtures("crew")
@pytest.mark.parametrize("way", ["run", "register"])
def test_a_workflow_in_python_runs_on_a_server_and_its_functions_on_workers(here, way):
    """Its folder is gone by then; no process but this one and jobs executes the file."""
    seen, read_by = here.folder / "seen", here.folder / "read-by"
    flow = FUNCTIONS.replace('os.environ["SEEN"]', repr(str(seen)))
    flow = flow.replace('os.environ.get("READ_BY", os.devnull)', repr(str(read_by)))
    folder = put(here.folder / "programs", {"etl.py": flow, "scale.py": "SCALE = 10\n"})
    if way == "register":
        assert here("register", "programs/etl.py", "--version", "1.0").status == 0
        begun = here("run", "etl", "--detach")
    else:
        begun = here("run", "programs/etl.py", "--detach")
    assert begun.status == 0, begun.err
    shutil.rmtree(folder)
    assert here("run", "etl/run1").status == 0
    assert "the total is 100 says a 'job'" in here("log", "etl/run1", "1/total").out
    assert seen.read_text() == "job\n"
    # Once for whoever gave it, and once for each of its two jobs.
    assert len(read_by.read_text().splitlines()) == 3


MAPPED = """\
from tidewheel import Workflow

flow = Workflow("shop")
image = flow.task("image", workflow="./image/")


@flow.task
def find() -> list[str]:
    return ["a", "b c"]


@flow.task
def process(file: str) -> int:
    print("reading", file)
    return len(file)


@flow.task
def summary(sizes: list[int]) -> None:
    print("sizes", sizes)


with flow.cycle("R1"):
    summary(process.map(find())) >> image
"""
IMAGE = """\
[scheduling]
    [[graph]]
        R1 = say
[runtime]
    [[say]]
        script = echo "said"
"""


@pytest.mark.usefixtures("crew")
@pytest.mark.parametrize("way", ["run", "register"])
def test_a_map_and_a_folder_of_a_workflow_in_python_run_on_a_server(here, way):
    folder = put(here.folder / "code", {"shop.py": MAPPED, "image/flow.cylc": IMAGE})
    if way == "register":
        assert here("register", "code/shop.py", "--version", "1.0").status == 0
        begun = here("run", "shop", "--detach")
    else:
        begun = here("run", "code/shop.py", "--detach")
    assert begun.status == 0, begun.err
    shutil.rmtree(folder)
    assert here("run", "shop/run1").status == 0
    assert here("log", "shop/run1", "1/process_file1").out == "reading b c\n"
    assert here("log", "shop/run1", "1/summary").out == "sizes [1, 3]\n"
    assert here("log", "shop/run1/1/image/01", "1/say").out == "said\n"


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


HANDLED = """\
[scheduler]
    [[events]]
        startup handlers = echo "%(event)s" >> told
        shutdown handlers = sleep 1; echo "%(event)s" >> told
[scheduling]
    [[xtriggers]]
        up = looking():PT1S
    [[graph]]
        R1 = @up => a
[runtime]
    [[a]]
        script = echo "seen $up_by"
"""
LOOKING = """\
import os

def looking():
    return True, {"by": os.environ.get("TIDEWHEEL_QUEUE", "the scheduler")}
"""


def test_h2_who_runs_a_strangers_workflow_has_its_handlers_run_as_jobs(here, there):
    """H2: in `tidewheel run`, too, whose worker runs them to their end before it leaves."""
    folder = {"flow.cylc": HANDLED, "lib/python/looking.py": LOOKING}
    put(here.folder / "tide", folder)
    assert here("register", "tide").status == 0
    ran = there("run", "tide")
    assert ran.status == 0, ran.out + ran.err
    run = there.state / "runs" / "tide" / "run1"
    assert (run / "told").read_text().split() == ["startup", "shutdown"]
    assert not (run / "log/scheduler/handlers/activity.log").exists()
    assert there("log", "tide/run1", "1/a").out == "seen run:tide/run1/code\n"
    own = put(there.folder / "own", folder)
    assert there("run", str(own)).status == 0
    run = there.state / "runs" / "own" / "run1"
    assert "shutdown" in (run / "log/scheduler/handlers/activity.log").read_text()
    assert not (run / "log/job/code").exists()
    assert there("log", "own/run1", "1/a").out == "seen the scheduler\n"
