"""What becomes of stages: services that end well, fail, never end, or cannot be started."""

import asyncio
import json
import shutil

import pytest

from tests.kit.runner_conformance import (
    DEADLINE_SECONDS,
    RecordedReports,
    assigned,
    claimed,
)
from tests.support.stages import (
    SAY,
    compose_text,
    files_of,
    opened_runner,
    service,
    stage_spec,
)
from tidewheel.core.queue.requests import Ending
from tidewheel.runners.containers.project import NAME_LENGTH_MAX, project_name

KINDS = ("compose", "swarm")
pytestmark = pytest.mark.parametrize("kind", KINDS)


class Stage:
    """One stage on a runner."""

    def __init__(self, kind, engine, home, text, **fields):
        self.kind, self.engine = kind, engine
        rest, self.allowed = fields.pop("rest", {}), fields.pop("allowed", ())
        task = claimed(
            command="true",
            spec=stage_spec(kind, text, **rest),
            **({"max_termination_seconds": 2.0} | fields),
        )
        self.assignment = assigned(task, home)
        self.directory = self.assignment.directory

    def play(self, scenario=None):
        """Start it, let something happen to it, and see how it ends."""

        async def play():
            async with opened_runner(self.kind, self.engine, self.allowed) as runner:
                reports = RecordedReports()
                job = await runner.start(self.assignment, reports)
                if scenario is not None:
                    await scenario(job, reports)
                async with asyncio.timeout(DEADLINE_SECONDS):
                    end = await job.wait()
            self.reports = reports
            return end

        end = asyncio.run(play())
        assert self.engine.left_behind() == {}
        return end


@pytest.fixture
def stage(kind, engine, tmp_path):
    return lambda text, **fields: Stage(kind, engine, tmp_path, text, **fields)


@pytest.mark.req("R004-57", "R004-58")
def test_a_stage_is_complete_when_every_service_ended_well_and_has_a_log_of_each(stage):
    shares = {"limits": {"cpus": "0.50", "memory": "64M"}, "reservations": {"cpus": "0.01"}}
    text = compose_text(
        first=service("echo one; echo oops >&2"),
        second=service("sleep 1; echo two", deploy={"resources": shares, "replicas": 1}),
    )
    played = stage(text)
    assert played.play().ending is Ending.SUCCEEDED
    files = files_of(played.directory)
    assert sorted(files["job.out"].splitlines()) == ["first | one", "second | two"]
    assert files["job.err"] == "first | oops\n"
    assert sorted(files["service-first.log"].split()) == ["one", "oops"]
    assert files["service-second.log"] == "two\n"


def test_m6_a_container_has_limits_that_its_file_does_not_name(stage, kind):
    """A Swarm is not told how many processes: its file has no word for it."""
    looks = "cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2> /dev/null; df -k /run"
    mounted = {"type": "tmpfs", "target": "/run"}
    played = stage(compose_text(a=service(looks, volumes=[mounted])))
    assert played.play().ending is Ending.SUCCEEDED
    said = files_of(played.directory)["service-a.log"]
    assert " 1048576 " in said
    assert kind == "swarm" or said.splitlines()[0] == "10000", said


@pytest.mark.req("R004-59")
def test_one_service_that_fails_fails_the_stage_and_ends_the_others(stage):
    text = compose_text(steady=service("sleep 600"), broken=service("echo no data >&2; exit 7"))
    end = stage(text).play()
    assert end.ending is Ending.FAILED
    assert end.exit_status == 7
    assert end.error.description.startswith("service broken: exit status 7")
    assert "no data" in end.error.description
    assert json.loads(end.error.args) == {"service": "broken", "exit_status": 7}


def test_a_log_that_the_engine_did_not_tell_is_asked_for_again(stage, tmp_path, monkeypatch):
    """As when it goes away for a moment after the last word."""
    script = f"""#!/bin/sh
case " $* " in
    *" logs "*" --follow "*) exit 1 ;;
    *" logs "*) if mkdir {tmp_path}/silent 2> /dev/null; then
        echo "Cannot connect to the Docker daemon" >&2
        exit 1
    fi ;;
esac
exec {shutil.which("docker")} "$@"
"""
    docker = tmp_path / "programs" / "docker"
    docker.parent.mkdir()
    docker.write_text(script)
    docker.chmod(0o700)
    monkeypatch.setenv("PATH", str(docker.parent), prepend=":")
    played = stage(compose_text(a=service("echo last word")))
    assert played.play().ending is Ending.SUCCEEDED
    assert (tmp_path / "silent").exists()
    assert files_of(played.directory)["job.out"] == "a | last word\n"


def test_what_a_stage_says_is_heard_while_it_runs(stage):
    said = json.dumps({"text": "half way", "output": "half"})
    text = compose_text(a=service(f"{SAY}'{said}'; sleep 600"))

    async def scenario(job, reports):
        await reports.until(lambda heard: heard.messages)
        assert reports.messages == [("half way", "half")]
        await job.stop(5.0)

    assert stage(text).play(scenario).ending is Ending.FAILED


@pytest.mark.req("R004-44")
def test_values_for_later_stages_are_said_and_beside_the_worker_written(stage, kind):
    script = f'{SAY}\'{{"values": {{"said": [1, 2]}}}}\''
    if kind == "compose":
        script += "; echo '{\"written\": true}' > $$TIDEWHEEL_OUTPUTS"
    played = stage(compose_text(a=service(script)))
    end = played.play()
    assert end.ending is Ending.SUCCEEDED
    kept = json.loads((played.directory / "outputs.json").read_text())
    assert kept == {"said": [1, 2]} | ({"written": True} if kind == "compose" else {})
    assert json.loads(end.values) == kept


def test_a_stage_whose_values_cannot_be_handed_on_has_failed_in_that(stage, kind):
    script = f'{SAY}\'{{"values": {{"n": {2**70}}}}}\''
    if kind == "compose":
        script = "echo oops > $$TIDEWHEEL_OUTPUTS"
    end = stage(compose_text(a=service(script))).play()
    assert (end.ending, end.error.code) == (Ending.FAILED, "bad_values")
    assert ("not valid JSON" if kind == "compose" else "64 bits") in end.error.description


def test_variables_of_the_task_count_more_than_those_of_the_file(stage):
    script = 'echo "$$GRID|$$KEPT|$$LEVEL"; test -n "$$TIDEWHEEL_TASK_ID"'
    text = compose_text(
        a=service(script, environment={"GRID": "fine", "KEPT": "k"}),
        b=service(script, environment=["GRID=fine", "KEPT=k"]),
    )
    told = {"GRID": "a $HOME ${x} 'b", "LEVEL": "3", "TIDEWHEEL_TASK_ID": ""}
    played = stage(text, rest={"environment": told})
    assert played.play().ending is Ending.SUCCEEDED
    said = sorted(files_of(played.directory)["job.out"].splitlines())
    assert said == [f"{name} | a $HOME ${{x}} 'b|k|3" for name in "ab"]


def test_a_service_that_never_ends_and_ignores_sigterm_is_killed_when_asked(stage):
    script = f"trap '' TERM; {SAY}'{{\"text\": \"up\"}}'; while :; do sleep 600; done"
    text = compose_text(a=service(script, init=False))

    async def scenario(job, reports):
        await reports.until(lambda heard: heard.messages)
        await job.stop(1.0)

    end = stage(text, max_termination_seconds=1.0).play(scenario)
    assert end.ending is Ending.FAILED
    assert end.exit_status is None


def test_a_service_with_too_little_memory_says_so(stage):
    beside_the_worker = {"constraints": ["node.role == manager"]}
    limits = {"resources": {"limits": {"memory": "8M"}}, "placement": beside_the_worker}
    script = "a=x; while :; do a=$$a$$a; done"
    end = stage(compose_text(greedy=service(script, init=False, deploy=limits))).play()
    assert (end.ending, end.exit_status) == (Ending.FAILED, 137)
    assert end.error.description.startswith("service greedy: killed, since it used more memory")
    assert end.error.code == "out_of_memory"


def test_a_service_with_enough_memory_that_is_killed_is_told_as_killed(stage):
    limits = {"resources": {"limits": {"memory": "64M"}}}
    end = stage(compose_text(a=service("kill -9 $$$$", deploy=limits))).play()
    assert (end.ending, end.error.code) == (Ending.FAILED, "signal")
    assert end.error.description.startswith("service a: ended by SIGKILL (exit status 137)")


def test_an_image_that_is_nowhere_is_named(stage):
    text = compose_text(a=service("true") | {"image": "nowhere/nothing:1.0"})
    end = stage(text).play()
    assert end.ending is Ending.FAILED
    assert (
        "an image is missing on this machine and could not be fetched" in end.error.description
    )
    assert "nowhere/nothing:1.0" in end.error.description
    for chatter in ("running in swarm mode", "Creating network", "Pulling a"):
        assert chatter not in end.error.description


def test_a_stage_that_could_not_be_made_leaves_no_network_of_its_run(stage):
    text = compose_text(a=service("true") | {"image": "nowhere/nothing:1.0"})
    of_run = {"id": "flow/run1/1/a/1", "run": 1, "rest": {"block_network": ["a"]}}
    assert stage(text, **of_run).play().ending is Ending.FAILED  # and nothing is left


def test_a_service_that_waits_for_the_health_of_one_that_ended_fails_its_stage(stage, kind):
    """A Swarm starts all services at once, so it does not run such a file."""
    waits = {"brief": {"condition": "service_healthy"}}
    text = compose_text(
        brief=service("true", healthcheck={"test": "true", "interval": "60s"}),
        late=service("true", depends_on=waits),
    )
    end = stage(text).play()
    words = end.error.description
    if kind == "swarm":
        assert "depends_on waits for service_healthy: a Swarm starts all services at" in words
    else:
        assert words.startswith("service late never starts: service brief, ")


def test_a_program_that_is_not_in_the_image_is_named(stage):
    text = compose_text(a=service("true") | {"command": ["no-such-program"], "init": False})
    end = stage(text).play()
    assert end.ending is Ending.FAILED
    assert "service a" in end.error.description
    assert "no-such-program" in end.error.description


def test_a_file_of_many_services_of_odd_and_long_names_runs(stage):
    names = ["a", "A_b-d", "x" * 40, "9lives"]
    played = stage(
        compose_text(**{name: service("true") for name in names}), id="Run Ü/../1/stage;$(id)/1"
    )
    assert played.play().ending is Ending.SUCCEEDED
    # Nothing was printed, and nothing lies anywhere else.
    assert set(files_of(played.directory)) <= {"job.out", "job.err"}


def test_a_network_with_a_longer_name_than_any_service_runs(stage):
    network = "between-the-receivers-and-the-imagers"
    document = json.loads(compose_text(a=service("true", networks=[network])))
    document["networks"] = {network: {}}
    played = stage(json.dumps(document), id=f"{'survey' * 9}/1/image/1")
    assert played.play().ending is Ending.SUCCEEDED


def test_a_relative_path_beside_the_jobs_folder_is_made_where_the_worker_allows_it(stage):
    text = compose_text(a=service("echo made > /sky/map", volumes=["../sky:/sky"]))
    played = stage(text, allowed=("bind-mounts",))
    assert played.play().ending is Ending.SUCCEEDED
    assert (played.directory / "sky" / "map").read_text() == "made\n"


def test_names_are_unique_valid_and_short_whatever_a_task_is_called(kind):
    ids = ["a", "A", "é", "run/1/x/1", "run/1/x/01", "-" * 300, "z" * 300, "z" * 299 + "/"]
    made = {project_name(kind, one, attempt, 20) for one in ids for attempt in (1, 2)}
    assert len(made) == 2 * len(ids)
    for name in made:
        assert name.startswith("tw-")
        assert name.replace("-", "").isalnum() and name == name.lower() and name.isascii()
        assert len(name) + 1 + 20 + 2 <= NAME_LENGTH_MAX
