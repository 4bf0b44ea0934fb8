"""A service that runs on after its run was stopped: it is named, and can be ended."""

import signal

import pytest

from tests.support.patience import eventually
from tests.support.sips import definition
from tests.support.sips import stage as described
from tidewheel.cli.exit_codes import ExitCode

pytestmark = pytest.mark.req("R011-10")
FILE = "engine-1.0.0.yaml"
SERVE = """\
trap 'echo ended >> {journal}; exit 0' TERM
echo began >> {journal}
while true; do sleep 0.1; done
"""
USE = "echo used >> {journal}\nuntil test -e {gate}; do sleep 0.1; done\n"
END = "tidewheel stop engine/run1 --kill --run"


@pytest.fixture
def said(tidewheel, stage):
    """What stages have said so far, in a run of a service that others use one by one."""
    journal, gate = tidewheel.folder / "said", tidewheel.folder / "gate"
    for name, script in {"serve": SERVE, "use": USE, "last": "true\n"}.items():
        stage(name, "script.sh", script.format(journal=journal, gate=gate))
    (tidewheel.folder / FILE).write_text(
        definition(
            described("serve", more="until: last"),
            described("use", "serve running"),
            described("last", "use complete"),
        )
    )
    return lambda: journal.read_text().split() if journal.exists() else []


@pytest.fixture
def stopped(tidewheel, said):
    """The output of a run that was stopped with Ctrl-C while its service was used."""
    with tidewheel.started("run", FILE) as running:
        running.read_until("use started")
        eventually(lambda: said() == ["began", "used"], "the service is used")
        running.send(signal.SIGINT)
        running.read_until("stopping: waiting for 1 job;")
        (tidewheel.folder / "gate").touch()
        ended = running.wait()
    assert ended.status == ExitCode.INTERRUPTED
    return ended.out + ended.err


def test_ctrl_c_names_the_service_that_still_runs_and_how_it_is_ended(stopped, tidewheel):
    assert "serve still runs and is found again when the run is resumed\n" in stopped
    assert f"to end it instead: {END}\n" in stopped
    assert tidewheel(*END.split()[1:]).status == 0


@pytest.mark.usefixtures("stopped")
def test_a_service_of_a_stopped_run_is_ended_and_nothing_else_begins(tidewheel, said):
    ended = tidewheel("stop", "engine", "--kill", "--run")
    assert ended.status == 0, ended.err
    assert said() == ["began", "used", "ended"]
    show = tidewheel("show", "engine", "--json").json
    assert show["run"]["status"] == "stopped"
    states = {
        one["id"]: one["status"] for one in tidewheel("tasks", "--jobs", "--json").json["tasks"]
    }
    assert states == {
        "engine/run1/1/serve/1": "cancelled",
        "engine/run1/1/use/1": "succeeded",
    }
    again = tidewheel("stop", "engine", "--kill", "--run")
    assert again.status == 2 and "engine/run1 is not running (stopped)" in again.err


@pytest.mark.usefixtures("stopped")
def test_without_a_scheduler_the_wish_is_kept_until_the_run_is_taken_up(tidewheel, said):
    kept = tidewheel("stop", "engine", "--kill")
    assert kept.status == 0 and "tidewheel run engine/run1" in kept.out
    assert said() == ["began", "used"]
    assert tidewheel("run", "engine/run1").status == 4
    assert said() == ["began", "used", "ended"]


@pytest.mark.usefixtures("stopped")
def test_one_job_of_a_stopped_run_is_not_ended_alone_and_the_answer_says_what_does(tidewheel):
    refused = tidewheel("kill", "engine", "serve")
    assert refused.status == 2
    assert "serve still runs" in refused.err and END in refused.err
    assert tidewheel("stop", "engine", "--kill", "--run").status == 0


@pytest.mark.usefixtures("stopped")
def test_a_run_that_is_resumed_finds_its_service_and_goes_on(tidewheel, said):
    assert tidewheel("run", "engine/run1").status == 0
    assert said() == ["began", "used", "ended"]
