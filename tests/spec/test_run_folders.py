"""Whose the folder of a run is: names are unique in a store only, folders in a home."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.driven_run import DrivenRun
from tidewheel.errors import Refused
from tidewheel.services.paths import last_numbered, take_folder

FLOW = "[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\n"


@pytest.fixture
def view(tmp_path: Path):
    run = DrivenRun(tmp_path, FLOW)
    yield run.view
    run.close()


def test_a_run_finds_its_folder_again_and_another_store_does_not_take_it(view, tmp_path):
    take_folder(view, tmp_path)
    take_folder(replace(view, status="stopped", epoch=7), tmp_path)
    of_another_store = replace(view, created_at=view.created_at + 1)
    with pytest.raises(Refused, match="belongs to another run"):
        take_folder(of_another_store, tmp_path)
    take_folder(replace(of_another_store, name="flow/run2"), tmp_path)


def test_a_folder_that_cannot_be_written_is_left_to_whoever_prepares_it(view, tmp_path):
    (tmp_path / "runs").write_text("no folder")
    take_folder(view, tmp_path)
    assert (tmp_path / "runs").read_text() == "no folder"


def test_numbers_of_folders_are_known_though_the_store_has_forgotten_their_runs(tmp_path):
    assert last_numbered("flow", tmp_path) == 0
    for name in ("flow/run2", "flow/run10", "flow/run3x", "flow/runs", "other/run99"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    assert last_numbered("flow", tmp_path) == 10
