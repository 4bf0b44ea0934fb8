"""Every runner that a worker may be asked for is opened by its row."""

from importlib import import_module

import pytest

from tidewheel.config import RUNNER_ROWS
from tidewheel.errors import BadSetting
from tidewheel.runners import registry
from tidewheel.runners.registry import RunnerParts


@pytest.mark.parametrize("row", RUNNER_ROWS, ids=lambda row: row.name)
def test_the_package_of_each_row_opens_its_runner(row):
    assert callable(import_module(f"tidewheel.runners.{row.package}.runner").open_runner)


def test_a_runner_is_found_by_its_program(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert registry.found_runners() == ()
    program = tmp_path / "sbatch"
    program.touch(mode=0o755)
    assert registry.found_runners() == ("slurm",)


def test_a_runner_that_nobody_knows_is_refused():
    with pytest.raises(BadSetting, match="slurm or compose or swarm"):
        registry.open_runner("nomad", RunnerParts(environ={}))
