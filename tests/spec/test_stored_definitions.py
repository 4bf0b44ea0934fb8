"""Definitions of runs: what is kept of a folder, and how it comes back (DESIGN §4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidewheel.core.graph.findings import Findings
from tidewheel.core.operator.definition import (
    RunOptions,
    StoredDefinition,
    StoredFile,
    is_same_content,
    sealed,
)
from tidewheel.errors import Refused
from tidewheel.formats.flow_cylc.workflow import load_workflow
from tidewheel.services.definition_sync import differs_from_folder
from tidewheel.services.definitions.snapshot import capture, load_options, restore, unpack


def kept(folder: Path, *files: str) -> list[str]:
    for name in ("flow.cylc", *files):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\n")
    loaded = load_workflow(folder, load_options(RunOptions(), "flow"), Findings())
    return [one.path for one in capture(loaded, folder).definition.files]


def test_what_runs_make_is_left_out_at_the_top_of_the_folder_only(tmp_path):
    files = (
        "app/share/ancil",
        "app/log/format",
        "etc/work/x",
        "share/data",
        "log/job/1",
        "work",
    )
    assert kept(tmp_path, *files) == [
        *("flow.cylc", "app/log/format", "app/share/ancil", "etc/work/x"),
    ]


def definition(path: str, content: bytes) -> StoredDefinition:
    return StoredDefinition(
        digest="d", workflow="flow", files=(StoredFile(path, content, executable=True),)
    )


def test_a_run_that_an_earlier_version_began_goes_on_with_what_was_accepted_then(tmp_path):
    text = "[scheduling]\n[[graph]]\nR1 = model => modle\n[runtime]\n[[model]]\n"
    stored = StoredDefinition(digest="d", workflow="flow", text=text)
    assert set(restore(stored, RunOptions(), tmp_path).graph.nodes) == {"model", "modle"}
    with pytest.raises(Refused, match="did you mean model"):
        restore(stored, RunOptions(), tmp_path, is_new=True)


def test_a_file_comes_back_whole_or_not_at_all(tmp_path, monkeypatch):
    """Half a file would be taken for one that jobs have changed, and stay."""

    def power_cut(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.rename", power_cut)
        with pytest.raises(OSError, match="space"):
            unpack(definition("bin/tool", b"#!/bin/sh"), tmp_path)
    assert list((tmp_path / "bin").iterdir()) == []
    unpack(definition("bin/tool", b"#!/bin/sh"), tmp_path)
    assert (tmp_path / "bin/tool").read_bytes() == b"#!/bin/sh"
    assert (tmp_path / "bin/tool").stat().st_mode & 0o777 == 0o700


def test_what_jobs_have_changed_stays_until_a_new_definition_comes(tmp_path):
    unpack(definition("lib/x", b"old"), tmp_path)
    (tmp_path / "lib/x").write_bytes(b"changed")
    unpack(definition("lib/x", b"old"), tmp_path)
    assert (tmp_path / "lib/x").read_bytes() == b"changed"
    unpack(definition("lib/x", b"new"), tmp_path, anew=True)
    assert (tmp_path / "lib/x").read_bytes() == b"new"


def test_a_folder_whose_program_became_executable_has_changed(tmp_path):
    (tmp_path / "tool").write_bytes(b"#!/bin/sh")
    (tmp_path / "tool").chmod(0o644)
    stored = definition("tool", b"#!/bin/sh")
    assert differs_from_folder(stored, tmp_path)
    (tmp_path / "tool").chmod(0o755)
    assert not differs_from_folder(stored, tmp_path)


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "link/x"])
def test_no_file_of_a_definition_lies_outside_of_its_run(tmp_path, path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "link").symlink_to(tmp_path)
    with pytest.raises(Refused, match="outside"):
        unpack(definition(path, b""), run)
    assert not (tmp_path / "x").exists()


# ---- how it came in ----


def test_the_same_content_is_another_definition_for_its_owner_and_for_a_stranger():
    strangers = sealed(StoredDefinition(digest="", workflow="flow", text="x"))
    owners = sealed(strangers, trusted=True)
    assert (strangers.is_trusted, owners.is_trusted) == (False, True)
    assert owners.digest != strangers.digest
    assert is_same_content(owners.digest, strangers.digest)
    # What somebody says a digest to be is not what counts.
    assert sealed(owners) == strangers


def test_what_earlier_versions_kept_is_a_strangers_unless_no_server_can_have_taken_it():
    digest = "0" * 64
    assert not StoredDefinition(digest=digest, workflow="flow").is_trusted
    assert not StoredDefinition(digest=digest, workflow="flow", kind="sip").is_trusted
    assert StoredDefinition(digest=digest, workflow="flow", kind="python").is_trusted
