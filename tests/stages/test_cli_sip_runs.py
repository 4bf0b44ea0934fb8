"""`tidewheel run` with a SIP definition whose stages are scripts and commands."""

import json
import os
import signal

import pytest

from tests.support.patience import eventually
from tidewheel.cli.exit_codes import ExitCode

DEFINITION = """\
schema_version: "2.0"
stages:
  - id: make
    version: 1.0.0
    type: setup
    timeout: {{ longest }}
    resources_required: []
  - id: use
    version: 1.0.0
    type: processing
    timeout: 60s
    resources_required: []
    dependencies:
      - {type: stage, value: make, condition: complete}
"""
MAKE = """\
echo "made for $PARAMETER_site"
if test -p "$PARAMETER_gate"; then cat "$PARAMETER_gate"; fi
echo '{"place": "'"$PARAMETER_site/7"'"}' > "$TIDEWHEEL_OUTPUTS"
"""
FILE = "vis-1.0.0.yaml.j2"
COMPOSE = "services:\n  work:\n    image: nothing/like-this:1\n"


@pytest.fixture
def flow(tidewheel, stage):
    (tidewheel.folder / FILE).write_text(DEFINITION)
    stage("make", "script.sh", MAKE)
    stage("make", "parameters.yaml", "site: north\ngate: open\nlongest: 60s\n")
    stage("make", "outputs.yaml", "- place\n")
    stage("use", "command.yaml.j2", "[echo, 'used {{ place }}', '{{ args }}']\n")
    stage("use", "parameters.yaml", "place:\n")
    stage("use", "args.yaml.j2", "from: {{ place }}\n")
    return FILE


@pytest.fixture
def gate(tidewheel):
    """A pipe for which the first stage waits; opened by whoever writes into it."""
    path = tidewheel.folder / "gate"
    os.mkfifo(path)
    return path


@pytest.mark.req("R004-41", "R004-44", "R004-48", "R004-57", "R004-58")
def test_a_later_stage_gets_what_an_earlier_one_wrote(tidewheel, flow):
    answer = tidewheel("run", flow)
    assert (answer.status, answer.err) == (0, "")
    assert "vis/run1 completed" in answer.out
    assert tidewheel("log", "1/make").out == "made for north\n"
    assert tidewheel("log", "1/use").out == 'used north/7 {"from":"north/7"}\n'


@pytest.mark.req("R004-43", "R004-46", "R004-47")
def test_parameters_come_from_options_and_files(tidewheel, flow):
    (tidewheel.folder / "more.yaml").write_text("site: of the file\nplace: 1.10\n")
    answer = tidewheel("run", flow, "-P", "more.yaml", "-p", "site=south")
    assert answer.status == 0, answer.err
    assert tidewheel("log", "1/make").out == "made for south\n"
    assert tidewheel("log", "1/use").out.startswith("used 1.1 ")
    options = tidewheel("show", "--json").json["run"]["options"]
    assert options["parameters"] == '{"place": 1.1, "site": "south"}'


@pytest.mark.parametrize("site", ["a'; echo escaped; '$(echo escaped)"])
def test_whatever_a_parameter_says_no_shell_reads_it(tidewheel, flow, stage, site):
    stage("make", "script.sh", 'echo \'{"place": "p"}\' > "$TIDEWHEEL_OUTPUTS"\n')
    stage("use", "command.yaml.j2", "[echo, '{{ site }}']\n")
    assert tidewheel("run", flow, "-p", f"site={site}").status == 0
    assert tidewheel("log", "1/use").out == f"{site}\n"


@pytest.mark.parametrize("word", ["FOO=bar", "eval"])
def test_the_first_word_of_a_command_is_a_program_and_nothing_else(
    tidewheel, flow, stage, word
):
    stage("make", "script.sh", 'echo \'{"place": "p"}\' > "$TIDEWHEEL_OUTPUTS"\n')
    stage("use", "command.yaml.j2", "['{{ site }}', 'echo escaped']\n")
    assert tidewheel("run", flow, "-p", f"site={word}").status == 1
    assert tidewheel("log", "1/use", "--file", "out").out == ""


def test_a_stage_finds_the_files_of_its_folder(tidewheel, flow, stage):
    stage("make", "table.txt", "of the stage\n")
    stage("make", "script.sh", 'cat "$TIDEWHEEL_STAGE_DIR/table.txt"\n')
    stage("make", "outputs.yaml", "[]\n")
    assert tidewheel("run", flow, "-p", "place=x").status == 0
    assert tidewheel("log", "1/make").out == "of the stage\n"


@pytest.mark.req("R004-45")
def test_a_request_that_lacks_a_parameter_is_refused(tidewheel, flow, stage):
    stage("make", "outputs.yaml", "- another\n")
    answer = tidewheel("run", flow)
    assert answer.status == 2
    assert "stage use needs the parameter 'place'" in answer.err
    assert tidewheel("runs", "--json").json["runs"] == []


@pytest.mark.req("R004-44", "R004-49")
def test_a_value_that_no_stage_left_ends_the_run_with_its_name(tidewheel, flow, stage):
    stage("make", "script.sh", "true\n")
    answer = tidewheel("run", flow)
    assert answer.status == 1
    message = "stage use needs the parameter 'place', but no earlier stage has"
    assert f"use not started: {message}" in answer.out
    assert all(line.count(message) < 2 for line in answer.out.splitlines())
    assert message in tidewheel("show").out
    assert "stalled" in tidewheel("runs").out


@pytest.mark.req("R004-59")
def test_a_stage_that_fails_ends_the_run_and_is_named(tidewheel, flow, stage):
    stage("make", "script.sh", "echo broken >&2; exit 3\n")
    answer = tidewheel("run", flow)
    assert answer.status == 1
    assert "make failed (exit 3): broken; 1 stage waits for it" in answer.err
    assert "because       make failed" in tidewheel("show").out
    assert "broken" in tidewheel("log", "1/make", "--err").out
    assert "job.out is empty" in tidewheel("log", "1/make").err
    why = tidewheel("why", "1/make").out
    assert "tidewheel run vis/run1 --stall-timeout 1h" in why
    assert "its last job: exit status 3; last line of job.err: broken" in why
    stage("make", "script.sh", MAKE)
    again = tidewheel("run", flow)
    assert again.status == 0 and "vis/run2 completed" in again.out


@pytest.mark.req("R004-16")
def test_a_stage_that_takes_longer_than_it_may_is_ended(tidewheel, flow, stage):
    stage("make", "script.sh", "exec sleep 40\n")
    answer = tidewheel("run", flow, "-p", "longest=1s")
    assert answer.status == 1
    [task] = tidewheel("show", "1/make", "--json").json["tasks"]
    assert task["submissions"][0]["error"] == "it ran longer than its limit of 1 s"


@pytest.mark.req("R004-62")
def test_a_run_that_was_killed_between_its_stages_goes_on_with_their_values(
    tidewheel, flow, gate
):
    with tidewheel.started("run", flow, "-p", f"gate={gate}") as running:
        running.read_until("make started")
        running.send(signal.SIGKILL)
        running.wait()
    gate.write_text("")  # the job, which nobody watches, ends
    answer = tidewheel("run", flow, "-p", f"gate={gate}")
    assert answer.status == 0, answer.err
    assert "vis/run1 resumes" in answer.out
    assert tidewheel("log", "1/use").out.startswith("used north/7 ")
    [task] = tidewheel("show", "1/make", "--json").json["tasks"]
    assert [one["submit"] for one in task["submissions"]] == [1]


def test_another_request_is_another_run(tidewheel, flow, gate):
    with tidewheel.started("run", flow, "-p", f"gate={gate}") as running:
        running.read_until("make started")
        running.send(signal.SIGKILL)
        running.wait()
    gate.write_text("")
    answer = tidewheel("run", flow, "-p", "site=south")
    assert answer.status == 0 and "vis/run2 completed" in answer.out


def test_a_definition_is_reloaded_for_stages_to_come(tidewheel, flow, stage, gate):
    with tidewheel.started("run", flow, "-p", f"gate={gate}") as running:
        running.read_until("make started")
        stage("use", "command.yaml.j2", "[echo, 'now {{ place }}']\n")
        tried = tidewheel("reload", "--dry-run")
        assert tried.status == 0, tried.err
        stage("make", "parameters.yaml", "site: north\ngate: open\nlongest: 60s\nmore:\n")
        refused = tidewheel("reload")
        assert refused.status == 2 and "parameter 'more'" in refused.err
        stage("make", "parameters.yaml", "site: north\ngate: open\nlongest: 60s\n")
        assert tidewheel("reload").status == 0
        gate.write_text("")
        assert running.wait().status == 0
    assert tidewheel("log", "1/use").out == "now north/7\n"


def test_containers_without_a_runner_are_told_at_once_and_by_why(tidewheel, flow, stage):
    (tidewheel.folder / "stages/make/1.0.0/script.sh").unlink()
    stage("make", "docker_compose.yaml", COMPOSE)
    with tidewheel.started("run", flow) as running:
        running.read_until("another worker unless you add --runner compose")
        running.read_until("starts")
        eventually(
            lambda: "--queue run:vis/run1 --runner compose" in tidewheel("why", "1/make").out,
            "why names the runner",
            interval_seconds=0.5,
        )
        running.send(signal.SIGINT)
        running.read_until("stopping: no job is active")
        assert running.wait().status == ExitCode.INTERRUPTED


@pytest.mark.req("R004-50")
def test_what_a_stage_asks_of_its_host_is_told_by_every_verdict(tidewheel, flow, stage):
    (tidewheel.folder / "stages/make/1.0.0/script.sh").unlink()
    stage("make", "docker_compose.yaml", f"{COMPOSE}    network_mode: host\n    pid: host\n")
    needs = "stage make needs a worker that allows host-network, host-pid"
    validated = tidewheel("validate", flow)
    assert f"it can be registered and run; {needs}" in validated.out
    assert "--allow-compose host-network --allow-compose host-pid" in validated.out
    assert f"; it can run; {needs}" in tidewheel("register", flow).out
    assert needs in tidewheel("workflows", "show", "vis").out
    assert needs in tidewheel("workflows", "check", "vis", "-p", "site=x").out
    told = tidewheel("workflows", "show", "vis", "--json").json["findings"]
    assert ("worker-needs", "note") in {(one["code"], one["severity"]) for one in told}


@pytest.mark.req("R004-50")
def test_what_must_exist_before_a_stage_runs_is_told_by_every_verdict(tidewheel, flow, stage):
    (tidewheel.folder / "stages/make/1.0.0/script.sh").unlink()
    joined = "    networks: [lab]\nnetworks: {lab: {external: true}}\n"
    stage("make", "docker_compose.yaml", f"{COMPOSE}{joined}")
    told = "stage make: network lab must exist on the engine or Swarm of the worker"
    made = "(docker network create lab; on a Swarm: docker network create --driver overlay"
    for words in (("validate", flow), ("register", flow), ("workflows", "show", "vis")):
        said = " ".join(tidewheel(*words).out.split())
        assert told in said and made in said, words
    given = {"id": "vis", "version": "1.0.0", "parameters": {"use": {"site": "x"}}}
    block = {"id": "PB-20260101-a-1", "type": "offline", "workflow": given}
    request = {"id": "SBI-20260101-a-1", "version": "2.0", "processing_blocks": [block]}
    request["scheduling_block"] = {"id": "x"}
    (tidewheel.folder / "sbi.json").write_text(json.dumps(request))
    submitted = tidewheel("sbi", "submit", "sbi.json")
    assert told in " ".join((submitted.out + submitted.err).split())


@pytest.mark.req("R004-50")
def test_a_stage_that_asks_for_more_than_is_allowed_waits_and_says_so_at_once(
    tidewheel, flow, stage
):
    (tidewheel.folder / "stages/make/1.0.0/script.sh").unlink()
    stage("make", "docker_compose.yaml", f"{COMPOSE}    network_mode: host\n")
    with tidewheel.started("run", flow) as running:
        running.read_until(
            "wait for another worker unless you add --allow-compose host-network"
        )
        running.read_until("starts")
        eventually(
            lambda: (
                "--runner compose" in (told := tidewheel("why", "1/make").out)
                and "--allow-compose host-network" in told
            ),
            "why names what to allow",
            interval_seconds=0.5,
        )
        running.send(signal.SIGINT)
        assert running.wait().status == ExitCode.INTERRUPTED


def test_looking_at_such_a_run(tidewheel, flow):
    assert tidewheel("run", flow).status == 0
    assert "use  succeeded" in tidewheel("tree").out
    assert "the success of make" in tidewheel("show", "1/use").out
    assert tidewheel("log").status == 0
    assert "\nuse " in tidewheel("rehearse", flow, "-p", "site=x", "--timeline").out
    assert tidewheel("run", flow, "--new", "--mode", "skip").status == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-p", "site"), "Expected NAME=VALUE"),
        (("-P", "nothing.yaml"), "No such file"),
        (("-P", "list.yaml"), "list.yaml is not a mapping of names to values"),
        (("-P", "bad.json"), "bad.json"),
    ],
)
def test_parameters_that_cannot_be_read_are_refused(tidewheel, flow, words, said):
    (tidewheel.folder / "list.yaml").write_text("- a\n")
    (tidewheel.folder / "bad.json").write_text('{"a": }')
    answer = tidewheel("run", flow, *words)
    assert answer.status == 2 and said in answer.err


def test_parameters_are_for_sip_definitions(tidewheel):
    (tidewheel.folder / "flow.cylc").write_text("[scheduling]\n[[graph]]\nR1 = a\n")
    answer = tidewheel("run", ".", "-p", "a=1")
    assert answer.status == 2 and "-s NAME=VALUE" in answer.err
