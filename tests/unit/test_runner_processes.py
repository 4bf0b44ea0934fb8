"""What is read from /proc and from a job's files, by example."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tests.support.patience import allowed
from tidewheel.core.queue.requests import Ending
from tidewheel.runners.job_directory import (
    JobDirectory,
    JobStatus,
    last_line,
    make_private_directory,
    parse_status,
)
from tidewheel.runners.job_environment import inherited_environment
from tidewheel.runners.outcome import end_of, exit_status_of
from tidewheel.runners.processes import (
    PAGE_BYTES,
    TICKS_PER_SECOND,
    Child,
    Exit,
    ProcessId,
    ProcessRow,
    ProcessTable,
    identify,
    parse_row,
    read_row,
    read_table,
    spawn,
)
from tidewheel.runners.sanitize import printable, storable
from tidewheel.runners.shell.runner import is_elsewhere

NO_FILES_LEFT = """
import resource
from dataclasses import replace
from tidewheel.runners.processes import is_process_alive, this_process
gone = replace(this_process(), pid=2**22 + 1)
assert not is_process_alive(gone)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
assert is_process_alive(gone)
"""


def test_nobody_is_taken_for_dead_by_who_has_no_file_descriptor_to_look_with():
    subprocess.run([sys.executable, "-c", NO_FILES_LEFT], check=True)


def row(pid, parent, **fields):
    standard = ProcessRow(
        pid=pid,
        state="S",
        parent=parent,
        group=pid,
        session=pid,
        cpu_seconds=0.0,
        started=pid,
        memory_bytes=0,
    )
    return standard._replace(**fields)


@pytest.mark.parametrize("name", ["sh", "a b", "(x) R 1 2", "a) Z 9 9 9"])
def test_a_process_is_read_whatever_its_name(name):
    fields = "S 10 11 12 0 -1 4194304 1 2 3 4 100 200 300 400 20 0 1 0 5555 9999 77 0"
    found = parse_row(7, f"7 ({name}) {fields}\n".encode())
    assert found == ProcessRow(
        pid=7,
        state="S",
        parent=10,
        group=11,
        session=12,
        cpu_seconds=1000 / TICKS_PER_SECOND,
        started=5555,
        memory_bytes=77 * PAGE_BYTES,
    )


def test_this_process_finds_itself():
    own = read_row(os.getpid())
    assert own is not None
    assert own.parent == os.getppid()
    assert own.memory_bytes > 1_000_000
    assert own.pid in read_table().rows
    assert identify(own.pid) == ProcessId(pid=own.pid, started=own.started)


def test_a_process_that_is_not_there_is_none():
    assert read_row(2**22 + 1) is None
    assert identify(2**22 + 1) is None


def spawned(tmp_path, *words):
    """A child of this process, as jobs are."""
    out, err = str(tmp_path / "out"), str(tmp_path / "err")
    return spawn(("/bin/sh", "-c", *words), {}, out=out, err=err)


def ended(child):
    """Waits until it has ended, and leaves it to be reaped."""
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    return child


def test_a_child_is_known_by_its_start_while_it_runs_and_after_it_was_reaped(tmp_path):
    child = spawned(tmp_path, "exit 3")
    known = child.process
    assert known == identify(child.pid)
    assert ended(child).process is known
    assert child.reap().status == 3
    assert child.process is known
    os.close(child.descriptor)


def test_a_child_of_which_nobody_asked_before_it_was_reaped_is_no_process(tmp_path):
    child = ended(spawned(tmp_path, "exit 0"))
    assert child.reap().status == 0
    # Whoever has its number now is not meant, even if it is this very process.
    stranger = Child(os.getpid(), child.descriptor)
    assert [one.process.started for one in (child, stranger)] == [-1, -1]
    assert stranger.process != identify(os.getpid())
    os.close(child.descriptor)


def test_a_child_that_other_code_has_reaped_is_no_process(tmp_path):
    child = spawned(tmp_path, "exit 0")
    os.waitpid(child.pid, 0)
    assert child.process == ProcessId(pid=child.pid, started=-1)
    assert child.reap() is None
    os.close(child.descriptor)


def test_descendants_are_found_at_any_depth_and_in_circles():
    rows = [row(1, 0), row(2, 1), row(3, 2), row(4, 3), row(9, 1), row(5, 6), row(6, 5)]
    table = ProcessTable({one.pid: one for one in rows})
    assert table.with_descendants([2]) == {2, 3, 4}
    assert table.with_descendants([5, 404]) == {5, 6}


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", JobStatus()),
        ("pid=7 start=8 boot=b", JobStatus()),  # the line is not complete
        (
            "pid=7 start=8 boot=b/1\n",
            JobStatus(process=ProcessId(pid=7, started=8), boot_id="b/1"),
        ),
        (
            "pid=7 start=8 boot=b\nexit=3\n",
            JobStatus(process=ProcessId(pid=7, started=8), boot_id="b", exit_status=3),
        ),
        (
            "pid=7 start=8 boot=b\nexit=3",
            JobStatus(process=ProcessId(pid=7, started=8), boot_id="b"),
        ),
        ("exit=0\n", JobStatus(exit_status=0)),
        ("exit=x pid= start=\n", JobStatus()),
    ],
)
def test_a_status_counts_line_by_complete_line(text, status):
    assert parse_status(text) == status


@pytest.mark.parametrize(
    ("told", "status"),
    [(0, 0), (1, 1), (128, 128), (129, -1), (137, -9), (143, -15), (255, 255), (-9, -9)],
)
def test_a_shell_tells_of_signals_by_adding_128(told, status):
    assert exit_status_of(Exit(status=told)) == status


def test_an_end_without_last_words_is_short(tmp_path):
    end = end_of(Exit(status=-signal.SIGINT), JobDirectory(tmp_path))
    assert end.ending is Ending.FAILED
    assert end.error is not None
    assert end.error.description == "ended by SIGINT"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", ""),
        (b"\n\n \n", ""),
        (b"one\ntwo\n\n", "two"),
        (b"x" * 10_000 + b"\nend", "end"),
        (b"\x1b[31mred\x07\n", "\\x1b[31mred\\x07"),
        (b"\xff\xfe bad\n", "\ufffd\ufffd bad"),
        (b"y" * 5_000, "y" * 300 + "…"),
    ],
)
def test_the_last_line_is_short_and_moves_no_cursor(tmp_path, content, line):
    log = tmp_path / "job.err"
    log.write_bytes(content)
    assert last_line(log) == line


def test_a_log_that_is_not_there_has_no_last_line(tmp_path):
    assert last_line(tmp_path / "job.err") == ""


def test_texts_are_mended():
    assert storable("a\0b\ud800", 100) == "a\ufffdb?"
    assert storable("abc", 2) == "ab…"
    assert printable("a\tb\u202e") == "a\\tb\\u202e"


def test_a_job_without_a_path_gets_a_usual_one():
    path = inherited_environment({"SECRET": "x"})["PATH"]
    assert path.startswith("/usr/local/bin:/usr/bin:/bin:")


def test_the_programs_of_tidewheel_come_last_and_once():
    once = inherited_environment({"PATH": "/bin"})["PATH"]
    assert once.startswith("/bin:")
    assert inherited_environment({"PATH": once})["PATH"] == once


def test_elsewhere_is_another_namespace_of_the_same_boot():
    assert is_elsewhere("b/1", "b/2")
    assert not is_elsewhere("b/1", "b/1")
    assert not is_elsewhere("c/1", "b/2")


def test_workers_that_make_the_same_folders_at_once_are_in_nobodys_way(tmp_path):
    workers, rounds = 4, 300
    together = Barrier(workers)

    def make(worker):
        for number in range(rounds):
            together.wait(timeout=allowed(10))
            make_private_directory(tmp_path / str(number) / "point" / f"task{worker}")

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(make, range(workers)))
    made = [path for path in tmp_path.glob("*/point/*") if path.stat().st_mode & 0o777 == 0o700]
    assert len(made) == workers * rounds
