"""The image of a release: made of the wheel by compose, started, asked, replaced."""

import os
import subprocess

import pytest

from tests.support.patience import allowed, eventually
from tests.support.python_image import IMAGE, make_python_image
from tests.support.release import release_folder
from tidewheel import __version__

# The wheel, the image below it and the image itself are made in the first test's time.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
NAME, VOLUME = "tide", "tide-state"
START = ("run", "--detach", "--init", "--network", "host", "--name", NAME)
ASK = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8450{}').status)"


@pytest.fixture(scope="module")
def builder(whole_swarm, tmp_path_factory):
    """An engine with the image, for which compose was asked in the folder of a release."""
    engine = whole_swarm[0]
    folder = tmp_path_factory.mktemp("image")
    make_python_image(engine, folder / "root")
    release = release_folder(folder / "release")
    built = subprocess.run(
        ("docker-compose", "build", "monitor"),
        cwd=release / "deploy" / "compose",
        env={
            **os.environ,
            **engine.environment,
            "DATABASE_PASSWORD": "x",
            "PYTHON_IMAGE": IMAGE,
        },
        capture_output=True,
        text=True,
        timeout=allowed(90),
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    yield engine
    engine.succeeds("image", "rm", "--force", "tidewheel", IMAGE)


@pytest.fixture
def engine(builder):
    """Without containers and volumes of this test before and after it."""

    def clear():
        builder.succeeds("rm", "--force", NAME)
        builder.succeeds("volume", "rm", "--force", VOLUME)

    clear()
    yield builder
    clear()


def start(engine):
    engine.docker(*START, "--volume", f"{VOLUME}:/var/lib/tidewheel", "tidewheel")
    eventually(
        lambda: engine.docker("inspect", "-f", "{{.State.Health.Status}}", NAME) == "healthy",
        lambda: engine.docker("logs", NAME),
        60,
    )


def within(engine, *words):
    return engine.docker("exec", NAME, *words)


def test_the_image_is_healthy_shows_page_and_manual_and_is_not_root(engine):
    start(engine)
    assert within(engine, "tidewheel", "--version") == f"tidewheel {__version__}"
    assert within(engine, "id", "-un") == "tidewheel"
    for path in ("/", "/docs/", "/docs/search.json"):
        assert within(engine, "python", "-c", ASK.format(path)) == "200"
    assert "/login?code=" in within(engine, "tidewheel", "token", "link")
    within(engine, "tidewheel", "submit", "--id", "a", "--wait", "--", "id", "-un")
    assert "tidewheel" in within(engine, "tidewheel", "log", "a")


def test_another_container_continues_with_what_the_volume_keeps(engine):
    start(engine)
    within(engine, "tidewheel", "submit", "--id", "kept", "--wait", "--", "true")
    engine.docker("stop", NAME)
    stopped = engine.docker("inspect", "-f", "{{.State.ExitCode}}", NAME)
    engine.docker("rm", NAME)
    start(engine)
    listed = within(engine, "tidewheel", "tasks", "--json")
    assert stopped == "0"
    assert '"kept"' in listed and '"succeeded"' in listed


def test_the_image_has_the_extra_for_postgresql_and_no_tool_of_its_making(engine):
    script = "import psycopg, pynvml; print(psycopg.pq.__impl__)"
    words = ("run", "--rm", "--entrypoint", "python", "tidewheel", "-c", script)
    assert engine.docker(*words) == "binary"
    left = engine.docker("run", "--rm", "--entrypoint", "ls", "tidewheel", "-A", "/usr/src")
    assert left == ""
