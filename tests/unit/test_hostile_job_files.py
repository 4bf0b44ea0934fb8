"""What a job may have put where its worker, or its scheduler, looks for a file."""

import os

import pytest

from tidewheel.errors import BadValues
from tidewheel.runners.job_directory import JobDirectory, read_plain
from tidewheel.runners.job_logs import NOTHING, read_part
from tidewheel.runners.messages.client import SpooledMessage, append
from tidewheel.runners.outcome import read_values
from tidewheel.scheduler.run_files import RunFiles
from tidewheel.services.file_removal import has_live_job


def folder(path):
    path.mkdir()


def link(path):
    path.with_name("other").write_text('{"x": 1}\n')
    path.symlink_to("other")


def pipe(path):
    os.mkfifo(path)


def pipe_with_a_silent_writer(path):
    os.mkfifo(path)
    return os.open(path, os.O_RDWR)


@pytest.fixture(params=[folder, link, pipe, pipe_with_a_silent_writer])
def put(request):
    """Puts one of these at a path; nothing that looks there may keep a file open."""
    opened, before = [], []

    def put_at(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        opened.append(request.param(path))
        before.append(os.listdir("/proc/self/fd"))

    yield put_at
    assert len(os.listdir("/proc/self/fd")) == len(before[0])
    for one in opened:
        if one is not None:
            os.close(one)


def test_no_worker_waits_for_it_follows_it_or_stumbles(tmp_path, put):
    put(tmp_path / "job.status")
    assert read_plain(tmp_path / "job.status", 100) == b""
    assert read_part(tmp_path, "status", 0, 100) == NOTHING
    assert JobDirectory(tmp_path).read_status().process is None
    with pytest.raises(BadValues, match="cannot be read"):
        read_values(tmp_path / "job.status")
    assert not has_live_job(tmp_path.parent, [tmp_path.name])


def test_no_scheduler_that_polls_the_job_does(tmp_path, put):
    put(tmp_path / "log/job/1/a/01/job.status")
    assert RunFiles(tmp_path).written_messages("1/a/01") == []


def test_a_worker_that_keeps_a_message_waits_for_nobody(tmp_path):
    pipe(tmp_path / "job.messages")
    with pytest.raises(OSError, match="messages"):
        append(tmp_path, SpooledMessage(key="k", text="hello"))
