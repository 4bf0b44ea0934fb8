"""`tidewheel init` makes examples that run as they are, and says how."""

import os
import subprocess
import sys
import venv

import pytest

from tests.support.json_page import promised, shape
from tests.support.patience import allowed

BIN = os.path.dirname(sys.executable)
STARTED = {
    "cycling": "example/run1 completed",
    "python": "example/run1 completed",
    "stages": "example/run1 completed",
    "queue": "4 tasks submitted",
}


def next_commands(tidewheel, made):
    """Types the commands that `init` proposed into a shell; returns what that said."""
    return subprocess.run(
        ["bash", "-e", "-c", "\n".join(made)],
        capture_output=True,
        text=True,
        cwd=tidewheel.folder,
        env=tidewheel.environment | {"PATH": f"{BIN}:{os.environ['PATH']}"},
        timeout=allowed(60),
        check=False,
    )


@pytest.mark.parametrize("kind", STARTED)
def test_the_next_two_commands_work_as_they_stand_there(tidewheel, kind):
    made = tidewheel("init", "example", "--kind", kind)
    assert made.status == 0
    told = [
        line.split("#")[0].strip() for line in made.out.partition("Next:\n")[2].splitlines()
    ]
    assert len(told) == 2
    done = next_commands(tidewheel, told)
    assert done.returncode == 0, done.stdout + done.stderr
    assert STARTED[kind] in done.stdout + done.stderr


def test_the_second_commands_show_what_the_first_did(tidewheel):
    tidewheel("init", "example", "--kind", "python")
    assert tidewheel("run", "example/example.py").status == 0
    assert tidewheel("log", "example", "3/report").out == "The mean is 20.3 degrees.\n"


def test_why_of_a_branch_that_was_not_taken_asks_for_no_action(tidewheel):
    tidewheel("init", "example", "--kind", "cycling")
    assert tidewheel("run", "example").status == 0
    told = tidewheel("why", "example", "3/fire_watch").out
    assert "3/model succeeded without it\n" in told and "needs action" not in told


def test_the_folder_of_a_python_workflow_is_told_the_file_to_name(tidewheel):
    tidewheel("init", "example", "--kind", "python")
    (tidewheel.folder / "example" / "other.py").write_text("import tidewheel\n")
    refused = tidewheel("run", "example")
    assert refused.status == 2
    assert "name the definition: example/example.py\n" in refused.err


def test_every_example_is_valid_and_keeps_its_name(tidewheel):
    for kind, file in {
        "cycling": "my.first/flow.cylc",
        "python": "two/two.py",
        "stages": "three/three-1.0.0.yaml.j2",
    }.items():
        name = file.partition("/")[0]
        assert tidewheel("init", name, "--kind", kind).status == 0
        checked = tidewheel("validate", "--strict", file)
        assert checked.status == 0, checked.out + checked.err


def test_a_request_of_the_example_with_stages_is_accepted(tidewheel):
    tidewheel("init", "sky", "--kind", "stages")
    assert tidewheel("register", "sky/").status == 0
    asked = tidewheel("sbi", "submit", "sky/requests/night.yaml")
    assert "accepted, 3 blocks" in asked.out


def test_nothing_is_ever_overwritten(tidewheel):
    (tidewheel.folder / "mine").mkdir()
    (tidewheel.folder / "mine" / "notes").write_text("precious")
    refused = tidewheel("init", "mine")
    assert refused.status == 2
    assert "mine exists already" in refused.err
    assert os.listdir(tidewheel.folder / "mine") == ["notes"]
    (tidewheel.folder / "link").symlink_to("nowhere")
    assert tidewheel("init", "link").status == 2
    (tidewheel.folder / "empty").mkdir()
    assert tidewheel("init", "empty").status == 0


@pytest.mark.parametrize("name", ["a b", "-x", "..", "x" * 300])
def test_a_name_that_no_workflow_can_have_is_refused_and_makes_nothing(tidewheel, name):
    refused = tidewheel("init", "--", name)
    assert refused.status == 2
    assert "Traceback" not in refused.err
    assert os.listdir(tidewheel.folder) == []


def test_programs_get_what_was_made_as_json(tidewheel):
    made = tidewheel("--json", "init", "deep/forecast")
    assert shape(made.json, ()) == shape(promised()["tidewheel init"], ())
    assert made.json["next"] == ["tidewheel run deep/forecast/", "tidewheel tree forecast"]


def test_functions_run_where_the_first_python_on_the_path_has_no_tidewheel(tidewheel, tmp_path):
    """As for those who installed tidewheel with pipx or uv."""
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=False)
    has = "import importlib.util as i, sys; sys.exit(i.find_spec('tidewheel') is None)"
    assert subprocess.run([bare / "bin" / "python3", "-c", has], check=False).returncode == 1
    tidewheel("init", "example", "--kind", "python")
    path = f"{bare / 'bin'}:{BIN}:{os.environ['PATH']}"
    ran = tidewheel("run", "example/example.py", PATH=path)
    assert ran.status == 0, ran.out + ran.err
