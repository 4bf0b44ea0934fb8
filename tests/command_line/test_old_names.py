"""Names of modules that files and definitions of earlier versions hold."""

import subprocess
import sys

import pytest


def started(*words):
    """Outside of the repository, as jobs are."""
    return subprocess.run(
        [sys.executable, "-E", "-P", *words],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_command_cylc_that_an_earlier_version_wrote_answers():
    modules = ("tidewheel.cli.cylc_shim", "tidewheel.cli.cylc")
    old, new = (started("-m", name, "--version") for name in modules)
    assert (old.returncode, old.stdout) == (new.returncode, new.stdout)
    assert old.returncode == 0 and old.stdout


def test_the_guard_of_fenced_jobs_that_an_earlier_worker_starts_is_there():
    assert "No module" not in started("-m", "tidewheel.runners.keeper").stderr


@pytest.mark.parametrize("name", ["Workflow", "all_of", "any_of"])
def test_definitions_import_from_the_old_place(name):
    words = f"from tidewheel.sources.python_api import {name} as old; import tidewheel"
    assert started("-c", f"{words}; assert old is tidewheel.{name}").returncode == 0


def test_a_task_of_a_definition_that_an_earlier_version_submitted_is_found(tmp_path):
    flow = tmp_path / "flow.py"
    flow.write_text(
        "from tidewheel.sources.python_api import Workflow\n"
        "flow = Workflow('old', initial=1, final=1)\n"
        "@flow.task\n"
        "def hello():\n"
        "    print('it ran')\n"
        "with flow.cycle('R1'):\n"
        "    flow.place(hello)\n",
        encoding="utf-8",
    )
    done = started("-m", "tidewheel.sources.python_api", str(flow), "hello")
    assert (done.returncode, done.stdout) == (0, "it ran\n"), done.stderr
