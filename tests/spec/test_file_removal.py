"""What is removed from the store is removed from the disk, and nothing else is."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.driven_run import DrivenRun
from tests.kit.memory import MemoryStore
from tidewheel.core.operator.run_log import RunLogLine
from tidewheel.core.queue.task import Instant
from tidewheel.runners.processes import this_process
from tidewheel.scheduler.run_files import LOGS_KEPT, RunFiles
from tidewheel.services.file_removal import (
    find_orphans,
    remove_folder,
    remove_orphan,
    remove_run_files,
)
from tidewheel.services.paths import log_generations, note_store, run_directory, take_folder
from tidewheel.views.log import last_text, part_of_file, run_log

FLOW = "[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\n"


@pytest.fixture
def view(tmp_path: Path):
    elsewhere = tmp_path / "driven"
    elsewhere.mkdir()
    run = DrivenRun(elsewhere, FLOW)
    yield run.view
    run.close()


def filled(folder: Path) -> Path:
    (folder / "log" / "job").mkdir(parents=True)
    (folder / "log" / "job" / "out").write_text("said")
    return folder


def test_the_folder_of_a_run_goes_and_with_the_last_one_that_of_its_workflow(view, tmp_path):
    folder = filled(run_directory(tmp_path, view.name))
    take_folder(view, tmp_path)
    assert remove_run_files(tmp_path, view, "mine")
    assert not folder.parent.exists() and (tmp_path / "runs").is_dir()
    assert not remove_run_files(tmp_path, view, "mine")


def test_a_folder_of_another_run_of_the_same_name_stays(view, tmp_path):
    folder = filled(run_directory(tmp_path, view.name))
    take_folder(replace(view, created_at=view.created_at + 1), tmp_path)
    assert not remove_run_files(tmp_path, view, "mine")
    assert (folder / "log" / "job" / "out").exists()


def test_a_folder_of_another_store_stays_though_its_run_is_called_the_same(view, tmp_path):
    folder = filled(run_directory(tmp_path, view.name))
    take_folder(view, tmp_path)
    note_store(folder, "another")
    assert not remove_run_files(tmp_path, view, "mine")
    assert (folder / "log" / "job" / "out").exists()
    note_store(folder, "mine")
    assert remove_run_files(tmp_path, view, "mine")


def test_a_folder_that_does_not_say_whose_it_is_stays(view, tmp_path):
    folder = filled(run_directory(tmp_path, view.name))
    assert not remove_run_files(tmp_path, view, "mine")
    assert (folder / "log" / "job" / "out").exists()
    note_store(folder, "mine")  # by a worker, where no scheduler ran
    assert remove_run_files(tmp_path, view, "mine")


def orphans(home):
    return asyncio.run(find_orphans(MemoryStore(clock=lambda: 0.0), home))


def test_a_folder_without_a_store_is_found_as_one_that_may_be_anothers(tmp_path):
    filled(run_directory(tmp_path, "flow/run1"))
    filled(run_directory(tmp_path, "flow/.removed-run2"))
    note_store(filled(run_directory(tmp_path, "flow/run3")), "another")
    found = {one.path: one.is_unmarked for one in orphans(tmp_path)}
    assert found == {"runs/flow/run1": True, "runs/flow/.removed-run2": False}


def test_a_folder_in_which_a_job_runs_is_not_removed(tmp_path):
    job = filled(run_directory(tmp_path, "flow/run1")) / "log" / "job" / "1" / "a" / "01"
    job.mkdir(parents=True)
    me = this_process()
    begun = f"pid={me.pid} start={int(me.started)} boot={me.boot_id}\n"
    (job / "job.status").write_text(begun)
    [found] = orphans(tmp_path)
    assert found.in_use and not remove_orphan(tmp_path, found)
    elsewhere = begun.replace(me.boot_id, me.boot_id + "1")  # another pid namespace
    (job / "job.status").write_text(elsewhere)
    assert not remove_orphan(tmp_path, found)
    (job / "job.status").write_text(begun.replace("start=", "start=1"))  # the pid is another's
    assert not orphans(tmp_path)[0].in_use
    (job / "job.status").write_text(f"{begun}exit=0\n")
    assert remove_orphan(tmp_path, found)


@pytest.mark.parametrize("name", ["..", ".", "", "../elsewhere", "a/../../elsewhere", "a\0b"])
def test_a_name_that_leads_elsewhere_removes_nothing(name, tmp_path):
    """S14."""
    kept = filled(tmp_path / "elsewhere")
    filled(tmp_path / "root" / "a")
    assert not remove_folder(tmp_path / "root", [name])
    assert not remove_folder(tmp_path / "root", name.split("/"))
    assert (kept / "log" / "job" / "out").exists() and (tmp_path / "root" / "a").exists()


def test_no_link_is_followed_at_the_root_on_the_way_at_the_end_or_within(tmp_path):
    """S14: whatever a job made of its folder."""
    kept = filled(tmp_path / "kept")
    root = tmp_path / "root"
    filled(root / "run")
    (root / "run" / "away").symlink_to(kept)
    (root / "link").symlink_to(kept)
    (tmp_path / "linked-root").symlink_to(root)
    assert not remove_folder(tmp_path / "linked-root", ["run"])
    assert not remove_folder(root, ["link"])
    assert not remove_folder(root, ["link", "log"])
    assert (root / "run").is_dir()
    assert remove_folder(root, ["run"])
    assert sorted(os.listdir(root)) == ["link"]
    assert (kept / "log" / "job" / "out").read_text() == "said"


# ---- the log of a run ----


def test_the_log_of_a_run_is_bounded_and_read_across_its_parts(tmp_path):
    folder = run_directory(tmp_path, "flow/run1")
    (folder / "log" / "scheduler").mkdir(parents=True)
    path, root = run_log(tmp_path, "flow/run1"), tmp_path / "runs"
    whole, bytes_max = "", 1_000
    heard, offset = b"", 0
    for number in range(400):
        files = RunFiles(folder, log_bytes_max=bytes_max)  # as after a restart
        files.write_log([RunLogLine("INFO", f"line {number}")], Instant(0.0))
        assert files.trouble == ""
        whole += f"1970-01-01T00:00:00Z INFO - line {number}\n"
        part = part_of_file(root, path, offset, 10_000)  # somebody follows it
        assert part is not None
        heard, offset = heard + part[0], part[1] + len(part[0])
    assert heard.decode() == whole
    parts = [one for _, one in log_generations(path)]
    assert len(parts) == LOGS_KEPT
    assert sum(one.stat().st_size for one in parts) <= LOGS_KEPT * (bytes_max + 100)
    text, was_cut = last_text(root, path, 3_000)
    assert (text, was_cut) == (whole[-3_000:], True)
    # What is no longer there is passed over.
    oldest = part_of_file(root, path, 0, 10)
    assert oldest is not None and oldest[1] == log_generations(path)[0][0] > 0


def test_a_log_that_never_began_anew_is_one_file(tmp_path):
    folder = run_directory(tmp_path, "flow/run1")
    (folder / "log" / "scheduler").mkdir(parents=True)
    RunFiles(folder).write_log([RunLogLine("INFO", "hello")], Instant(0.0))
    path = run_log(tmp_path, "flow/run1")
    assert last_text(tmp_path / "runs", path) == (path.read_text(), False)
    assert part_of_file(tmp_path / "runs", folder / "nothing", None, 10) is None
