"""Commands about runs through a server: the same words, the same answers, from elsewhere."""

import json
import re
import signal
from contextlib import ExitStack

import pytest

from tests.support.many_commands import answers
from tests.support.patience import eventually, eventually_told
from tests.support.prepared_run import PreparedRun
from tests.support.sips import definition
from tests.support.workflow_folders import put
from tidewheel.cli.exit_codes import ExitCode

FLOW = """
[scheduler]
    allow implicit tasks = True
    [[events]]
        stall timeout = PT0S
[scheduling]
    [[graph]]
        R1 = a => b
[runtime]
    [[a]]
        script = say-hello
    [[b]]
        script = {script}
"""


@pytest.fixture
def scheduler(there):
    """Takes up runs and runs their jobs, at the machine with the store."""
    quick = {"TIDEWHEEL_SCHEDULER_INTERVAL_SECONDS": "0.1"}
    with ExitStack() as stack:

        def start(*runs):
            stack.enter_context(there.started("scheduler", **quick))
            queues = [part for run in runs for part in ("--queue", f"run:{run}")]
            stack.enter_context(there.started("worker", *queues))

        yield start


def define(machine, name="tide", script="true"):
    folder = machine.folder / name
    (folder / "bin").mkdir(parents=True)
    (folder / "flow.cylc").write_text(FLOW.format(script=script))
    program = folder / "bin" / "say-hello"
    program.write_text("#!/bin/sh\necho hello from $TIDEWHEEL_WORKFLOW_ID\n")
    program.chmod(0o700)
    return folder


# ---- running ----


def test_options_for_a_run_that_waits_for_a_scheduler_are_refused_and_not_dropped(here):
    define(here)
    assert here("run", "tide", "--detach").status == 0
    answer = here("run", "tide/run1", "--detach", "--stopcp", "1")
    assert answer.status == 2, answer.out + answer.err
    assert "tide/run1 waits for a scheduler already" in answer.err
    assert here("run", "tide/run1", "--detach").status == 0


def test_a_run_is_sent_driven_there_and_followed_here(here, there, scheduler):
    define(here)
    scheduler("tide/run1")
    done = here("run", "tide")
    assert done.status == 0, done.out + done.err
    assert "tide/run1 starts at http://" in done.out
    assert "tide/run1 completed after" in done.out and "2 succeeded" in done.out
    assert "1/b" in done.out  # lines of its log
    assert here("log", "tide", "1/a").out == "hello from tide/run1\n"
    assert here("log", "tide", "1/a", "--follow").out == "hello from tide/run1\n"
    assert not (here.state / "runs").exists()
    [listed] = here("runs", "--json").json["runs"]
    facts = [listed[name] for name in ("status", "driven", "offered")]
    assert facts == ["completed", False, False]
    assert there("show", "tide", "--json").json == here("show", "tide", "--json").json
    rehearsed = here("rehearse", "tide")
    assert "the run time of earlier runs is assumed" in rehearsed.err  # those of the server
    assert here("runs", "--delete", "tide/run1", "--yes").status == 0
    assert here("runs", "--json").json["runs"] == []
    assert not (there.state / "runs" / "tide" / "run1").exists()


def test_a_failure_is_the_exit_status_here(here, scheduler):
    define(here, script="false")
    scheduler("tide/run1", "tide/run2")
    failed = here("run", "tide", "--json")
    assert failed.status == 1
    end = json.loads(failed.out.splitlines()[-1])
    assert (end["status"], end["ends"]) == ("stalled", {"succeeded": 1, "failed": 1})
    assert any("1/b" in cause for cause in end["causes"])
    aborted = here("run", "tide", "--new", "--abort-if-any-task-fails")
    assert aborted.status == 1 and "aborted: 1/b failed" in aborted.err


TROUBLE = '''
[scheduler]
    allow implicit tasks = True
    [[events]]
        stall timeout = PT0.1S
[scheduling]
    [[graph]]
        R1 = """
            flaky => b
            b => c
            x? => y
            gone? => z
        """
[runtime]
    [[flaky]]
        script = test "$CYLC_TASK_TRY_NUMBER" -gt 1
        execution retry delays = PT0S
    [[b]]
        script = exit 3
    [[x]]
        script = kill -9 $$
    [[gone]]
        script = tidewheel kill "$TIDEWHEEL_WORKFLOW_ID" 1/gone; sleep 100
'''


def lines_of(done):
    """Without the times, the first line and the last: the manner is another.

    A scheduler that is slow to begin is told of, too, and only from afar.
    """
    told = [re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in done.out.splitlines()]
    told = [re.sub(r", then stops, at [^;\s]+", ", then stops", line) for line in told]
    own = (line for line in told[1:-1] if not line.startswith("no scheduler has taken it yet"))
    return sorted(own), done.err.splitlines()


def test_what_is_told_of_a_run_is_the_same_from_here(here, there, scheduler):
    for machine in (here, there):
        (machine.folder / "tide").mkdir()
        (machine.folder / "tide" / "flow.cylc").write_text(TROUBLE)
    near = there("run", "tide")
    scheduler("tide/run2")
    far = here("run", "tide")
    assert near.status == far.status == 1
    near_lines = [[one.replace("/run1", "/run2") for one in some] for some in lines_of(near)]
    assert [*lines_of(far)] == near_lines
    assert "1/b failed: exit status 3" in far.out
    assert "it waits 100ms for you" in far.out


@pytest.mark.req("R004-2")
def test_a_definition_without_stages_is_complete_from_here_as_there(here, there, scheduler):
    for machine in (here, there):
        put(machine.folder, {"none-1.0.0.yaml": definition()})
    near = there("run", "none-1.0.0.yaml")
    scheduler("none/run2")
    far = here("run", "none-1.0.0.yaml")
    assert (near.status, near.err) == (far.status, far.err) == (0, "")
    assert "none/run2 completed after" in far.out


def test_a_run_that_is_left_goes_on_and_is_found_again(here, scheduler, tmp_path):
    gate = tmp_path / "gate"
    define(here, script=f"until test -e {gate}; do sleep 0.1; done")
    scheduler("tide/run1")
    with here.started("run", "tide") as running:
        running.read_until("1/b")
        running.send(signal.SIGINT)
        left = running.wait()
    assert left.status == ExitCode.INTERRUPTED
    assert "tidewheel run tide/run1" in left.out and "tidewheel stop tide/run1" in left.out
    assert here("show", "tide", "--json").json["run"]["driven"]
    refused = here("run", "tide/run1", "--stopcp", "1")
    assert refused.status == 2 and "already runs" in refused.err
    with here.started("run", "tide/run1") as again:
        again.read_until("is followed at")
        gate.touch()
        done = again.wait()
    assert done.status == 0 and "tide/run1 completed" in done.out


def test_a_command_that_was_killed_follows_the_run_that_it_began(here, scheduler, tmp_path):
    gate = tmp_path / "gate"
    define(here, script=f"until test -e {gate}; do sleep 0.1; done")
    scheduler("tide/run1")
    words = ("run", "tide", "--stall-timeout", "1h")
    with here.started(*words) as running:
        running.read_until("1/b")
        beside = here("run", "tide")  # other words
        assert beside.status == 2 and "tide/run1 is running" in beside.err
        assert "tidewheel run tide/run1" in beside.err and "--new" in beside.err
        running.send(signal.SIGTERM)
        assert running.wait().status == ExitCode.TERMINATED
    with here.started(*words) as again:
        again.read_until("tide/run1 is followed at")
        again.send(signal.SIGKILL)
        again.wait()
    gate.touch()
    eventually(
        lambda: here("show", "tide", "--json").json["run"]["status"] == "completed", "its end"
    )
    told = here(*words)
    assert told.status == 0 and "tide/run1 completed after" in told.out
    assert "its result was not shown yet" in told.out
    assert [one["name"] for one in here("runs", "--json").json["runs"]] == ["tide/run1"]


def test_while_a_command_follows_its_run_the_same_command_is_refused(here, scheduler, tmp_path):
    gate = tmp_path / "gate"
    define(here, script=f"until test -e {gate}; do sleep 0.1; done")
    scheduler("tide/run1")
    with here.started("run", "tide") as running:
        running.read_until("1/b")
        beside = here("run", "tide")
        assert beside.status == ExitCode.REFUSED, beside.out
        assert "tide/run1 is running (process" in beside.err
        gate.touch()
        assert running.wait().status == 0


def test_a_result_of_a_definition_that_has_changed_since_is_named_from_here(
    here, scheduler, tmp_path
):
    gate = tmp_path / "gate"
    folder = define(here, script=f"until test -e {gate}; do sleep 0.1; done")
    scheduler("tide/run1", "tide/run2")
    with here.started("run", "tide") as running:
        running.read_until("1/b")
        running.send(signal.SIGKILL)
        running.wait()
    gate.touch()
    eventually(
        lambda: here("show", "tide", "--json").json["run"]["status"] == "completed", "its end"
    )
    (folder / "flow.cylc").write_text(FLOW.format(script="echo other"))
    after = here("run", "tide")
    assert after.status == 0 and "tide/run2 starts" in after.out, after.out
    assert "tide/run1 ended before, and its result was not shown: completed;" in after.err
    assert "the definition has changed" in after.err


def test_a_run_in_which_nothing_ran_has_failed_from_here_too(here, scheduler):
    define(here)
    scheduler("tide/run1")
    with here.started("run", "tide", "--pause") as running:
        running.read_until("starts at")
        eventually(
            lambda: here("show", "tide", "--json").json["run"]["status"] == "paused", "a pause"
        )
        assert here("remove", "tide", "1/a").status == 0
        assert here("resume", "tide").status == 0
        done = running.wait()
    assert done.status == ExitCode.FAILED, done.out
    assert "skipped" in done.out and "no task was ready at any point" in done.out


def test_a_run_that_somebody_stops_is_not_done_for_whoever_follows_it(here, scheduler):
    gate = here.folder / "gate"
    define(here, script=f"until test -e {gate}; do sleep 0.1; done")
    scheduler("tide/run1")
    with here.started("run", "tide") as running:
        running.read_until("1/b")
        assert here("stop", "tide", "--now").status == 0
        assert running.wait().status == ExitCode.STOPPED
    assert here("kill", "tide", "1/b").status == 2  # it is stopped
    gate.touch()  # or its job would wait for ever


def test_a_run_is_begun_paused_resumed_stopped_and_carried_on(here, server, scheduler):
    define(here)
    looker = server.caller("read")

    def becomes(status):
        facts = "/runs/tide/facts"
        eventually(lambda: looker.get(facts).json["run"]["status"] == status, status)

    begun = here("run", "tide", "--detach", "--pause", "--json")
    assert (begun.status, begun.json["run"]) == (0, "tide/run1")
    waiting, unheard = answers(here, [["runs"], ["resume", "tide"]])
    assert "no scheduler drives it yet" in waiting.out
    assert "is not running (created)" in unheard.err
    scheduler("tide/run1")
    becomes("paused")
    commands = [
        ["set", "tide", "1/a", "--dry-run", "--json"],
        ["hold", "tide", "1/b"],
        ["stop", "tide"],
    ]
    tried, held, stopped = answers(here, commands)
    assert [one["id"] for one in tried.json["changes"]] == ["1/a", "1/b"]
    assert (held.status, stopped.status) == (0, 0)
    becomes("stopped")
    assert here("run", "tide/run1", "--slots", "3").status == 2
    with here.started("run", "tide") as running:  # the folder means the run that was stopped
        running.read_until("tide/run1 is followed")
        becomes("paused")
        for done in answers(here, [["release", "tide", "1/b"], ["resume", "tide"]]):
            assert done.status == 0, done.err
        done = running.wait()
    assert done.status == 0 and "completed" in done.out
    history = looker.get("/runs/tide/history").json["commands"]
    assert all("a test (token" in one["who"] for one in history)


@pytest.mark.parametrize("behind", ["", "/api/v1"])
def test_whoever_names_a_server_is_told_commands_that_name_it(here, behind):
    """Also if its address was copied from a request."""
    define(here)
    url = here.environment["TIDEWHEEL_SERVER"]
    words = ("run", "tide", "--detach", "--server", url + behind)
    assert f"tidewheel stop tide/run1 --server {url}{behind}" in here(*words).err


def test_advice_of_a_run_that_is_followed_names_the_server_by_which_it_is_reached(
    here, scheduler
):
    define(here, script="false")
    scheduler("tide/run1")
    url = here.environment["TIDEWHEEL_SERVER"]
    stalled = here("run", "tide", "--server", url)
    assert stalled.status == 1
    reached = f"tide/run1 --server {url}"
    assert f"tidewheel trigger {reached} 1/b" in stalled.out
    assert f"tidewheel trigger {reached} 1/b" in stalled.err
    assert f"tidewheel run {reached}" in stalled.err
    for one in re.findall(r"tidewheel [a-z]+ tide/run1.*", stalled.out + stalled.err):
        assert f" --server {url}" in one


def test_what_a_server_does_not_take_is_refused_here(here):
    folder = define(here)
    (folder / "flow.cylc").write_text("[scheduling]\n[[graph]]\nR1 = a =>\n")
    assert here("run", "tide").status == 2
    python = here.folder / "flow.py"
    python.write_text(
        "from tidewheel import Workflow\none, two = Workflow('a'), Workflow('b')\n"
    )
    commands = [
        ["run", "flow.py"],
        ["run", "nowhere"],
        ["runs", "--json"],
    ]
    refused, lost, listed = answers(here, commands)
    assert refused.status == 2 and "several workflows: a, b" in refused.err
    assert lost.status == 2 and listed.json["runs"] == []
    wrong = here("runs", TIDEWHEEL_TOKEN="tw_1_nonsense")
    assert wrong.status == 2 and "token" in wrong.err
    local = here("run", "tide", "--detach", TIDEWHEEL_SERVER="")
    assert local.status == 2


# ---- looking and acting ----


@pytest.fixture
def run(there):
    return PreparedRun(there).starts().succeeds("1/prep").fails("1/model_a")


LOOKS = [
    ("runs",),
    ("show", "forecast"),
    ("show", "forecast", "1/post"),
    ("show",),
    ("why", "forecast", "1/post"),
    ("tree", "forecast"),
    ("tree", "forecast", "--window", "1"),
    ("tree", "forecast//1"),
    ("trigger", "forecast", "1/model_a", "--dry-run"),
    ("remove", "forecast", "1/model_a", "--dry-run"),
    ("hold", "forecast", "--after", "1", "--dry-run"),
    ("kill", "forecast", "1/model_b", "--dry-run"),
    ("stop", "forecast", "--at", "2", "--dry-run"),
    ("broadcast", "forecast"),
    ("log", "forecast", "1/model_a"),
    ("why", "forecast", "1/nobody"),
    ("show", "nope"),
]


def test_everything_is_seen_as_where_the_store_is(here, there, run):
    run.writes_log("1/model_a", "job.out", "one line\n")
    asked = [*LOOKS, *([*words, "--json"] for words in LOOKS if words[0] != "log")]
    for words, near, far in zip(
        asked, answers(there, asked), answers(here, asked), strict=True
    ):
        assert far == near, words


def test_a_command_that_acts_on_some_tasks_only_is_not_wholly_done_from_here_either(here, run):
    with run.answering():
        held = here("hold", "forecast", "1/prep", "2/prep")
    assert (held.status, held.err) == (1, "hold had no effect on 1/prep\n")
    assert held.out == (
        "1/prep is unchanged: it has ended and does not run again by itself\n2/prep is held\n"
    )


def test_every_verb_is_heard(here, run):
    verbs = [
        ("trigger", "forecast", "1/model_a"),
        ("set", "forecast", "1/post", "--pre", "all"),
        ("remove", "forecast", "1/model_a"),
        ("hold", "forecast", "2/prep"),
        ("release", "forecast", "--all"),
        ("kill", "forecast", "1/model_b"),
        ("poll", "forecast", "1/model_b"),
        ("pause", "forecast"),
        ("resume", "forecast"),
        ("stop", "forecast"),
        ("broadcast", "forecast", "-n", "prep", "-s", "script=true"),
        ("message", "forecast", "1/model_b", "half way"),
        ("ext-trigger", "forecast", "new data", "7"),
        ("reload", "forecast", str(run.folder)),
    ]
    with run.hearing() as heard:
        for words, done in zip(verbs, answers(here, verbs), strict=True):
            assert done.status == 0, (words, done.err)
    assert [json.loads(one)["verb"] for one in heard] == [words[0] for words in verbs]


# ---- SIP definitions ----


STAGES = """\
schema_version: "2.0"
stages:
  - {id: make, version: 1.0.0, type: setup, timeout: 60s, resources_required: []}
  - id: use
    version: 1.0.0
    type: processing
    timeout: 60s
    resources_required: []
    dependencies: [{type: stage, value: make, condition: complete}]
"""


def define_stages(machine):
    files = {
        "vis-1.0.0.yaml": STAGES,
        "stages/make/1.0.0/script.sh": "echo '{\"place\": \"'$PARAMETER_site'/7\"}' "
        '> "$TIDEWHEEL_OUTPUTS"\n',
        "stages/make/1.0.0/parameters.yaml": "site:\n",
        "stages/make/1.0.0/outputs.yaml": "[place]\n",
        "stages/use/1.0.0/command.yaml.j2": "[echo, '{{ place }}']\n",
        "stages/use/1.0.0/parameters.yaml": "place:\n",
    }
    for name, text in files.items():
        path = machine.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return "vis-1.0.0.yaml"


@pytest.mark.req("R004-44", "R004-45", "R004-47")
def test_stages_are_sent_and_run_there_with_their_parameters(here, scheduler):
    flow = define_stages(here)
    refused = here("run", flow)
    assert refused.status == 2 and "stage make needs the parameter 'site'" in refused.err
    scheduler("vis/run1")
    done = here("run", flow, "-p", "site=north")
    assert done.status == 0, done.out + done.err
    assert "vis/run1 completed after" in done.out
    assert here("log", "vis", "1/use").out == "north/7\n"


def test_a_run_of_stages_is_reloaded_from_here(here, scheduler):
    flow = define_stages(here)
    wait = here.folder / "stages/make/1.0.0/script.sh"
    wait.write_text(f"tidewheel hold 1/use\n{wait.read_text()}")
    scheduler("vis/run1")
    begun = here("run", flow, "-p", "site=north", "--detach")
    assert begun.status == 0, begun.err
    eventually_told(lambda: "+ succeeded" in here("show", "vis", "1/make").out, "make has run")
    new = here.folder / "stages/use/1.0.0/command.yaml.j2"
    new.write_text("[echo, 'now {{ place }}']\n")
    reloaded = here("reload", "vis")
    assert reloaded.status == 0, reloaded.err
    assert here("release", "vis", "1/use").status == 0
    assert here("run", "vis/run1").status == 0
    assert here("log", "vis", "1/use").out == "now north/7\n"


COMPOSE = "services: {work: {image: 'busybox:1.36'}}\n"


def test_a_stage_that_no_worker_can_take_is_named_while_it_is_followed_and_keeps_no_run(
    here, scheduler
):
    flow = define_stages(here)
    (here.folder / "stages/make/1.0.0/script.sh").unlink()
    (here.folder / "stages/make/1.0.0/docker_compose.yaml").write_text(COMPOSE)
    scheduler("vis/run1")
    advice = "tidewheel worker --queue run:vis/run1 --runner compose"
    with here.started("run", flow, "-p", "site=north") as running:
        said = running.read_until("1/make waits: No worker offers the label")
        assert advice in said
        stopped = here("stop", "vis")
        assert stopped.status == 0 and "waits for" not in stopped.out
        assert running.wait().status == ExitCode.STOPPED
