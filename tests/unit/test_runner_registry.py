"""Every runner that a worker may be asked for has a row in the registry."""

import pytest

from tidewheel.config import RUNNERS
from tidewheel.errors import BadSetting
from tidewheel.runners import registry
from tidewheel.runners.registry import RunnerParts


def test_settings_and_registry_name_the_same_runners_in_the_same_order():
    assert tuple(registry.RUNNER_KINDS) == RUNNERS


def test_a_runner_is_found_by_its_program(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert registry.found_runners() == ()
    program = tmp_path / "sbatch"
    program.touch(mode=0o755)
    assert registry.found_runners() == ("slurm",)


def test_a_runner_that_nobody_knows_is_refused():
    with pytest.raises(BadSetting, match="slurm or compose or swarm"):
        registry.open_runner("nomad", RunnerParts(environ={}))
