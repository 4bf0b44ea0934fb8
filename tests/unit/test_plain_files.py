"""Where jobs may have put anything, files are looked at before they are opened (S11)."""

import os
import sys

import pytest

from tidewheel.errors import Refused
from tidewheel.runners.job_logs import open_plain

opened = []
sys.addaudithook(lambda name, facts: opened.append(facts) if name == "open" else None)


@pytest.fixture
def root(tmp_path):
    """A folder with a file in it, and a secret outside."""
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "runs" / "a" / "01"
    folder.mkdir(parents=True)
    (folder / "job.out").write_text("said")
    return tmp_path / "runs"


def opens(root, path):
    """What was opened, not only looked at."""
    opened.clear()
    with pytest.raises(Refused):
        open_plain(root, path)
    return [facts[0] for facts in opened if not facts[2] & os.O_PATH]


def test_a_plain_file_is_read(root):
    with open_plain(root, root / "a" / "01" / "job.out") as file:
        assert file.read() == b"said"


def test_the_root_may_be_a_link(root, tmp_path):
    (tmp_path / "elsewhere").symlink_to(root)
    with open_plain(tmp_path / "elsewhere", tmp_path / "elsewhere/a/01/job.out") as file:
        assert file.read() == b"said"


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "device"])
def test_what_is_no_plain_file_is_not_even_opened(root, kind):
    path = root / "a" / "01" / "other"
    match kind:
        case "link":
            path.symlink_to(root.parent / "secret")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/zero")
    assert opens(root, path) == []


@pytest.mark.parametrize("part", ["a", "a/01"])
def test_no_folder_on_the_way_may_be_a_link(root, part):
    elsewhere = root.parent / "elsewhere"
    (root / part).rename(elsewhere)
    (root / part).symlink_to(elsewhere)
    assert opens(root, root / "a" / "01" / "job.out") == []


@pytest.mark.parametrize("path", ["../secret", "a/../../secret", "/etc/passwd", ""])
def test_nothing_outside_of_the_root_is_opened(root, path):
    assert opens(root, root / path) == []


def test_what_is_not_there_is_not_found(root):
    for path in ("a/02/job.out", "a/01/job.err"):
        with pytest.raises(FileNotFoundError):
            open_plain(root, root / path)
