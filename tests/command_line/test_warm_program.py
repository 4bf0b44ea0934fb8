"""Commands of these tests are forks of a loaded program: they are what new processes are."""

import os
import signal
import stat
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, is_warm, warm_program
from tests.support.patience import eventually

FLOW = "[scheduling]\n[[graph]]\nR1 = a => b\n[runtime]\n[[root]]\nscript = {script}\n"
COMMANDS = [
    (),
    ("--version",),
    ("--help",),
    ("rnu",),
    ("tasks",),
    ("--json", "tasks"),
    ("task", "nothing"),
    ("validate", "nowhere"),
    ("validate", "bad", "--json"),
    ("verify",),
    ("submit", "--file", "-"),
]


def typed(root, *arguments, cold, **options):
    """The same command in the same surroundings, by a fork or by a process of its own."""
    root.mkdir(exist_ok=True)
    user = CommandLine(root)
    for name in ("good", "bad"):
        (user.folder / name).mkdir()
    (user.folder / "good" / "flow.cylc").write_text(FLOW.format(script="true"))
    (user.folder / "bad" / "flow.cylc").write_text(FLOW.format(script="true") + "[[")
    if cold:  # an interpreter that is told so starts anew
        options["PYTHONDONTWRITEBYTECODE"] = "1"
    answer = user(*arguments, **options)
    said = (text.replace(str(root), "ROOT") for text in (answer.out, answer.err))
    return answer.status, *said, user


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_fork_says_and_does_what_a_new_process_does(tmp_path, arguments):
    stdin = '{"id": "ö", "command": "true"}\n' * ("submit" in arguments)
    new = typed(tmp_path / "new", *arguments, cold=True, stdin=stdin)
    fork = typed(tmp_path / "fork", *arguments, cold=False, stdin=stdin)
    assert fork[:3] == new[:3]
    assert fork[0] or fork[1] or fork[2]


def test_a_run_in_a_fork_ends_as_one_in_a_new_process(tmp_path):
    ends = {}
    for cold in (True, False):
        status, _, _, user = typed(tmp_path / str(cold), "run", "good", cold=cold)
        ends[cold] = status, "completed" in user("runs").out
    assert ends[False] == ends[True] == (0, True)


def test_a_fork_has_the_umask_folder_and_time_zone_of_its_caller(tidewheel):
    before = os.umask(0o077)
    try:
        (tidewheel.folder / "flow").mkdir()
        (tidewheel.folder / "flow" / "flow.cylc").write_text(
            FLOW.format(script="umask; pwd > /dev/null; date +%Z")
        )
        assert tidewheel("run", "flow", TZ="Asia/Kolkata").status == 0
        told = tidewheel("log", "flow", "1/a").out
    finally:
        os.umask(before)
    assert "0077" in told
    assert "IST" in told
    assert stat.S_IMODE(tidewheel.state.stat().st_mode) == 0o700


def test_large_input_and_output_pass_through(tidewheel):
    lines = "".join(f'{{"id": "t{n}", "command": "true"}}\n' for n in range(4000))
    assert tidewheel("submit", "--file", "-", stdin=lines).status == 0
    assert len(tidewheel("--json", "tasks", "--limit", "1000").out) > 100_000


def test_who_hangs_up_has_the_command_killed(tidewheel):
    null = os.open(os.devnull, os.O_RDWR)
    command = warm_program().start(
        (tidewheel.program, "worker"), tidewheel.folder, tidewheel.environment, null, null, null
    )
    os.close(null)
    command.hang_up()
    eventually(lambda: not Path(f"/proc/{command.pid}").exists(), "the worker is gone")


def test_a_signal_that_ends_a_fork_is_its_status(tidewheel):
    null = os.open(os.devnull, os.O_RDWR)
    command = warm_program().start(
        (tidewheel.program, "worker"), tidewheel.folder, tidewheel.environment, null, null, null
    )
    os.close(null)
    os.kill(command.pid, signal.SIGKILL)
    assert command.wait() == -signal.SIGKILL


@pytest.mark.parametrize("name", ["PYTHONUTF8", "LD_PRELOAD", "LC_ALL"])
def test_what_an_interpreter_reads_when_it_starts_starts_one(tidewheel, name):
    assert is_warm(tidewheel.environment, ("tasks",))
    assert not is_warm(tidewheel.environment | {name: "1"}, ("tasks",))
    assert not is_warm(tidewheel.environment | {"LANG": "C"}, ("tasks",))
