"""H6: who may speak to a container engine is root, so its group is not for shell jobs."""

import os
import socket
import subprocess

import pytest

from tests.support.container_engine import DOCKER
from tests.support.fleet import fleet
from tests.support.other_users import as_root, become, open_folder, reachable

USER, GROUP = 64_002, 100_000 + os.getpid()
NOWHERE = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}
GROUP_NAME = f"tw{os.getpid()}"
BOTH = ("--runner", "compose", "--runner", "shell")
USERS = [f"tw{os.getpid()}-{role}" for role in ("engine", "tenant")]


@pytest.fixture
def crew():
    if reason := DOCKER.missing_reason():
        pytest.skip(reason)
    with open_folder() as folder, fleet(folder) as made:
        yield made


@pytest.fixture
def engine_socket(crew):
    """As an engine listens: root's, and open to a group."""
    path = crew.folder / "docker.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        os.chown(path, 0, GROUP)
        path.chmod(0o660)
        yield {"DOCKER_HOST": f"unix://{path}"}


def test_h6_a_worker_for_containers_takes_no_shell_tasks_unless_told_so(crew):
    with crew.client() as client:
        client.submit(command="true", id="a")
        worker = crew.start("worker", "--runner", "compose", "--once", **NOWHERE)
        assert worker.process.wait(60) == 1
        assert "this worker runs no shell commands (add --runner shell)" in worker.log
        assert client.get("a").status.value == "ready"
        assert crew.start("worker", *BOTH, "--once", **NOWHERE).process.wait(60) == 0
        assert client.get("a").status.value == "succeeded"


def own_home(crew, user):
    home = crew.folder / "own"
    home.mkdir()
    os.chown(home, user, user)
    os.chmod(crew.folder / "tidewheel.db", 0o600)
    for name in crew.folder.glob("tidewheel.db*"):
        os.chown(name, user, user)
    os.chown(crew.folder, user, user)
    return {"TIDEWHEEL_HOME": str(home), "HOME": str(home)}


@as_root
def test_h6_shell_jobs_beside_an_engine_that_their_user_may_speak_to_are_refused(
    crew, engine_socket
):
    given = own_home(crew, USER) | engine_socket
    prefix = become(USER, "--groups", str(GROUP))
    worker = crew.start("worker", *BOTH, "--once", prefix=prefix, **given)
    assert worker.process.wait(60) == 2
    assert "may use the container engine" in worker.log
    allowed = ("worker", *BOTH, "--once", "--allow-compose", "engine-socket")
    assert crew.start(*allowed, prefix=prefix, **given).process.wait(60) == 0
    plain = ("worker", "--runner", "compose", "--once")
    assert crew.start(*plain, prefix=prefix, **given).process.wait(60) == 0
    outside = crew.start("worker", *BOTH, "--once", prefix=become(USER), **given)
    assert outside.process.wait(60) == 0


@pytest.fixture
def users():
    """A worker's user in the engine's group, and a tenant's."""
    subprocess.run(["groupadd", "--gid", str(GROUP), GROUP_NAME], check=True)
    for name in USERS:
        subprocess.run(["useradd", "--system", "--user-group", name], check=True)
    subprocess.run(["usermod", "-aG", GROUP_NAME, USERS[0]], check=True)
    yield
    for name in USERS:
        subprocess.run(["userdel", name], check=True)
    subprocess.run(["groupdel", GROUP_NAME], check=True)


@as_root
@pytest.mark.usefixtures("users")
def test_h6_jobs_as_other_users_do_not_have_the_engine_s_group(crew, engine_socket):
    path = crew.folder / "map.toml"
    path.write_text(f'worker = "{USERS[0]}"\n[jobs]\n"*" = "{USERS[1]}"\n')
    given = own_home(crew, int(subprocess.check_output(["id", "-u", USERS[0]]))) | engine_socket
    words = ("worker", *BOTH, "--once", "--run-as", str(path))
    with crew.client() as client:
        client.submit(command=f"id -Gn; test ! -w {crew.folder}/docker.sock", id="a")
    assert crew.start(*words, prefix=reachable(), **given).process.wait(60) == 0
    [log] = (crew.folder / "own").glob("tasks/*/*/1/job.out")
    assert log.read_text() == f"{USERS[1]}\n"
    subprocess.run(["usermod", "-aG", GROUP_NAME, USERS[1]], check=True)
    refused = crew.start(*words, prefix=reachable(), **given)
    assert refused.process.wait(60) == 2
    assert f"the user {USERS[1]} may use the container engine" in refused.log
