"""Every runner that a worker may be asked for has a row in the registry."""

import pytest

from tidewheel.config import RUNNERS
from tidewheel.errors import BadSetting
from tidewheel.runners import registry
from tidewheel.runners.runner_parts import RunnerParts


def test_settings_and_registry_name_the_same_runners_in_the_same_order():
    assert tuple(registry.RUNNER_KINDS) == RUNNERS


def test_a_runner_is_found_by_its_program(monkeypatch):
    monkeypatch.setattr(registry.shutil, "which", lambda program: f"/usr/bin/{program}")
    assert registry.found_runners() == ("slurm",)
    monkeypatch.setattr(registry.shutil, "which", lambda _: None)
    assert registry.found_runners() == ()


def test_a_runner_that_nobody_knows_is_refused():
    with pytest.raises(BadSetting, match="slurm or compose or swarm"):
        registry.open_runner("nomad", RunnerParts(environ={}))
