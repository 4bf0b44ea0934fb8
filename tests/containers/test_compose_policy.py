"""S26: what a compose file may not ask of the host, judged after docker-compose resolved it."""

import asyncio
import fcntl
import json
import os
from pathlib import Path

import pytest

from tests.kit.runner_conformance import RecordedReports, assigned, claimed
from tests.support.container_engine import DOCKER
from tests.support.stages import compose_text, opened_runner, service, stage_spec
from tidewheel.config import ALLOWABLE
from tidewheel.core.operator.definition import RUN_DIRECTORY
from tidewheel.core.queue.task import TaskId
from tidewheel.errors import BadSetting, RunnerUnable
from tidewheel.runners.containers.docker_cli import Cli, has_compose_2
from tidewheel.runners.containers.engines import ComposeEngine
from tidewheel.runners.containers.runner import EngineRunner

BAD_FILES = sorted((Path(__file__).parent / "bad_compose").glob("*.yaml"))
AT_ONCE = 6


def judge_all(texts, home, allowed=(), queue="default", run=None, kind="compose"):
    """What becomes of each; no engine is there, so whatever is accepted waits for one.

    With the folder of a run they are submissions of its stage `a`."""
    around = {} if run is None else {RUN_DIRECTORY: str(run)}

    async def judge_them():
        room = asyncio.Semaphore(AT_ONCE)

        async def judge(number, text):
            task = claimed(
                number,
                id=TaskId(f"flow/run1/1/a/{number}"),
                command="true",
                spec=stage_spec(kind, text),
                queue=queue,
            )
            async with room:
                try:
                    job = await runner.start(assigned(task, home, **around), RecordedReports())
                except RunnerUnable:
                    return "accepted"
                return (await job.wait()).error.description

        async with opened_runner(kind, None, allowed) as runner:
            return await asyncio.gather(*(judge(*one) for one in enumerate(texts)))

    return asyncio.run(judge_them())


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory, worker_id):
    """Of each file; made once, also for all workers of pytest-xdist."""
    if reason := DOCKER.missing_reason():
        pytest.skip(reason)
    base = tmp_path_factory.getbasetemp()
    known = (base if worker_id == "master" else base.parent) / "verdicts.json"
    with known.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not known.exists():
            texts = [path.read_text() for path in BAD_FILES]
            known.write_text(json.dumps(judge_all(texts, tmp_path_factory.mktemp("bad"))))
    return dict(zip(BAD_FILES, json.loads(known.read_text()), strict=True))


@pytest.mark.req("R004-50", "R004-57")
@pytest.mark.parametrize("path", BAD_FILES, ids=lambda path: path.stem)
def test_a_bad_file_is_refused_in_its_own_words(path, verdicts):
    first = path.read_text().splitlines()[0]
    assert first.removeprefix("# refused: ") in verdicts[path]


def test_there_are_many_bad_files_and_each_has_its_own_words():
    firsts = [path.read_text().splitlines()[0] for path in BAD_FILES]
    assert len(BAD_FILES) >= 20
    # Paths that lie outside are refused alike, however they are written.
    assert len(set(firsts)) >= len(BAD_FILES) - 3


def test_what_a_worker_allows_is_not_refused(tmp_path):
    if reason := DOCKER.missing_reason():
        pytest.skip(reason)
    texts = [
        compose_text(a=service("true", privileged=True)),
        compose_text(a=service("true", volumes=["/etc:/e", "./own:/own"])),
    ]
    # The address where no engine is: who may mount anything may not mount the engine's folder.
    texts.append(compose_text(a=service("true", volumes=["/nonexistent:/e"])))
    only_mounts = judge_all(texts, tmp_path, allowed=("bind-mounts",))
    assert "privileged" in only_mounts[0]
    assert only_mounts[1] == "accepted"
    assert "--allow-compose engine-socket" in only_mounts[2]


@pytest.mark.parametrize("queue", ["trusted", "run:flow/run1"])
def test_what_a_worker_allows_one_queue_is_refused_to_the_others(tmp_path, queue):
    if reason := DOCKER.missing_reason():
        pytest.skip(reason)
    texts = [compose_text(a=service("true", privileged=True))]
    allowed = (f"{queue}:privileged", "bind-mounts", "another:host-pid")
    assert judge_all(texts, tmp_path / "1", allowed, queue) == ["accepted"]
    assert "privileged" in judge_all(texts, tmp_path / "2", allowed)[0]


def test_a_job_may_have_its_own_folder_volumes_limits_and_networks(tmp_path):
    if reason := DOCKER.missing_reason():
        pytest.skip(reason)
    limits = {"resources": {"limits": {"cpus": "0.5", "memory": "64M"}}}
    text = compose_text(
        a=service(
            "true",
            volumes=["./data:/data", "scratch:/scratch", "/anonymous"],
            deploy=limits,
            security_opt=["no-new-privileges"],
            oom_score_adj=500,
            network_mode="bridge",
            ports=["127.0.0.1:8080:80", "[::1]:8080:80"],
            shm_size="64m",
            tmpfs=["/run", "/tmp:size=64m"],
            ulimits={"nofile": {"soft": 1024, "hard": 4096}, "core": 0},
            restart="always",
            container_name="mine",
        )
    )
    text = text[:-1] + ', "volumes": {"scratch": {}}, "networks": {"inner": {}}}'
    assert judge_all([text], tmp_path) == ["accepted"]
    (executed,) = tmp_path.glob("**/compose.json")
    [made] = json.loads(executed.read_bytes())["services"].values()
    assert made["tmpfs"] == ["/run:size=1073741824", "/tmp:size=64m"]
    # docker compose 2 wants it beside the other limits of `deploy`.
    limits = made["deploy"]["resources"]["limits"]
    assert made.get("pids_limit", limits.get("pids")) == 10_000


def test_m6_what_stages_take_of_a_host_is_bounded_unless_the_worker_allows_more(tmp_path):
    if reason := DOCKER.missing_reason():
        pytest.skip(reason)
    more = compose_text(a=service("true", shm_size="2g", pids_limit=20_000))
    port = compose_text(a=service("true", ports=["8080:80"]))
    bounded = judge_all([more, port], tmp_path / "1")
    assert "--allow-compose limits" in bounded[0] and "--allow-compose ports" in bounded[1]
    allowed = ("limits", "ports")
    assert judge_all([more, port], tmp_path / "2", allowed) == ["accepted", "accepted"]


@pytest.mark.req("R004-50")
def test_on_a_swarm_a_port_of_a_loopback_address_has_to_be_allowed_like_any_other(tmp_path):
    """A Swarm publishes ports on all addresses of all nodes, whatever address is written."""
    if reason := DOCKER.missing_reason():
        pytest.skip(reason)
    long_form = {"target": 80, "published": 18080, "protocol": "tcp", "mode": "host"}
    texts = [
        compose_text(a=service("true", ports=["127.0.0.1:18080:80"])),
        compose_text(a=service("true", ports=[long_form])),
    ]
    for said in judge_all(texts, tmp_path / "1", kind="swarm"):
        assert "a Swarm publishes it on all addresses of its nodes" in said
        assert "--allow-compose ports" in said and "127.0.0.1:PORT" not in said
    assert judge_all(texts, tmp_path / "2", ("ports",), kind="swarm") == ["accepted"] * 2
    assert judge_all(texts[:1], tmp_path / "3") == ["accepted"]


def test_what_docker_compose_1_would_leave_out_of_containers_is_refused(tmp_path):
    """Else the stage would run without its settings, and could end well."""
    if reason := DOCKER.missing_reason():
        pytest.skip(reason)
    if has_compose_2(os.environ):
        pytest.skip("docker compose is of version 2 here, which leaves nothing out")
    top = ', "configs": {"c": {"file": "./c"}}, "secrets": {"s": {"external": true}, '
    top += '"f": {"file": "./f"}}}'
    texts = [
        compose_text(a=service("true", **keys))[:-1] + top
        for keys in (
            {"configs": ["c"]},
            {"configs": [{"source": "c", "target": "/c"}]},
            {"secrets": ["s"]},
            {"secrets": ["f"]},
            {},
        )
    ]
    said = judge_all(texts, tmp_path / "1", ("external",))
    assert "docker-compose 1 ignores configs (c of service a)" in said[0]
    assert "use docker compose 2 or a Swarm" in said[0]
    assert said[1] == said[0]
    assert "docker-compose 1 ignores secrets (s of service a)" in said[2]
    assert said[3:] == ["accepted", "accepted"]
    assert judge_all(texts, tmp_path / "2", ("external",), kind="swarm") == ["accepted"] * 5


@pytest.mark.req("R004-57")
def test_a_stage_of_a_run_may_mount_share_but_not_what_another_stage_could_replace(tmp_path):
    """A container that has all of share can put a link to anything at share/cycle/1."""
    if reason := DOCKER.missing_reason():
        pytest.skip(reason)
    texts = [
        compose_text(a=service("true", volumes=[f"${{TIDEWHEEL_RUN_DIR}}/{folder}:/s"]))
        for folder in ("share", "work/1/a", "share/cycle/1", "share/x", "work", "work/1/b")
    ]
    run = tmp_path / "runs/flow/run1"
    (run / "log/job/1/a").mkdir(parents=True)
    verdicts = judge_all(texts, tmp_path, run=run)
    assert verdicts[:2] == ["accepted", "accepted"]
    assert all("lies outside the job's folder" in one for one in verdicts[2:])


@pytest.mark.req("R004-57")
def test_h6_a_mount_is_judged_by_where_links_lead(tmp_path):
    """A stage that replaced its run's share by a link would move the mount of a later one."""
    if reason := DOCKER.missing_reason():
        pytest.skip(reason)
    run = tmp_path / "runs/flow/run1"
    (run / "work/1").mkdir(parents=True)
    (run / "log/job/1/a").mkdir(parents=True)
    (run / "share").symlink_to("/etc")
    (run / "work/1/a").symlink_to(tmp_path)
    (tmp_path / "cycle").mkdir()
    texts = [
        compose_text(a=service("true", volumes=[f"${{TIDEWHEEL_RUN_DIR}}/{folder}:/s"]))
        for folder in ("share", "work/1/a")
    ]
    shared, worked = judge_all(texts, tmp_path, run=run)
    assert "the path contains a link, which leads to /etc" in shared
    assert f"the path contains a link, which leads to {tmp_path}" in worked
    assert judge_all(texts, tmp_path, ("bind-mounts",), run=run) == ["accepted", "accepted"]


@pytest.mark.req("R004-57")
def test_h6_a_home_behind_a_link_of_its_owner_is_fine(tmp_path):
    if reason := DOCKER.missing_reason():
        pytest.skip(reason)
    (tmp_path / "real/runs/flow/run1/log/job/1/a").mkdir(parents=True)
    (tmp_path / "home").symlink_to("real")
    run = tmp_path / "home/runs/flow/run1"
    text = compose_text(a=service("true", volumes=["${TIDEWHEEL_RUN_DIR}/share:/s", "./x:/x"]))
    assert judge_all([text], tmp_path / "home", run=run) == ["accepted"]


@pytest.mark.req("R004-57")
def test_a_variable_without_a_value_is_none_of_the_worker(tmp_path, monkeypatch):
    """docker-compose would look it up when it makes the containers, where it needs its own."""
    if reason := DOCKER.missing_reason():
        pytest.skip(reason)
    monkeypatch.setenv("DOCKER_AUTH_CONFIG", "credentials")
    listed = ["DOCKER_AUTH_CONFIG", "HOME", "EMPTY=", "N=1"]
    named = {"DOCKER_AUTH_CONFIG": None, "HOME": None, "EMPTY": "", "N": "1"}
    text = compose_text(
        a=service("true", environment=listed), b=service("true", environment=named)
    )
    assert judge_all([text], tmp_path) == ["accepted"]
    (executed,) = tmp_path.glob("**/compose.json")
    services = json.loads(executed.read_bytes())["services"]
    for told in (services["a"]["environment"], services["b"]["environment"]):
        assert (told["EMPTY"], told["N"]) == ("", "1")
        assert told.keys().isdisjoint({"DOCKER_AUTH_CONFIG", "HOME"})


def test_a_worker_is_told_what_it_could_allow():
    if reason := DOCKER.missing_reason():
        pytest.skip(reason)
    for unknown in ("everything", "queue:everything", ":privileged", "privileged:queue"):
        with pytest.raises(BadSetting, match="host-network"):
            EngineRunner(ComposeEngine(Cli(os.environ)), allowed=(unknown,))
    assert all(ALLOWABLE.values())
