"""The first minutes with the program, in an empty folder and an empty home."""

import subprocess
import sys

import pytest

HEAVY = ("asyncio", "apsw", "msgspec", "psutil", "rich", "tidewheel.client", "tidewheel.store")


def test_from_nothing_to_a_result(tidewheel):
    submitted = tidewheel("submit", "--", "echo", "hello world")
    assert submitted.status == 0
    task_id = submitted.word
    assert "No worker serves queue 'default'; start a worker: tidewheel worker" in submitted.err
    assert f"look at it: tidewheel task {task_id}" in submitted.err

    worked = tidewheel("worker", "--exit-when-idle")
    assert worked.status == 0
    assert f"{task_id}  attempt 1: echo 'hello world'" in worked.out
    assert f"{task_id}  attempt 1 succeeded in" in worked.out
    assert worked.out.endswith("Idle, exiting.\n")

    listed = tidewheel("tasks")
    assert [line.split()[:3] for line in listed.out.splitlines()] == [
        ["ID", "NAME", "QUEUE"],
        [task_id, "default", "succeeded"],
    ]
    assert tidewheel("task", task_id, "--log", "out").out == "hello world\n"
    assert tidewheel("verify").out == "OK: no inconsistencies found\n"


def test_without_a_command_the_program_shows_its_help(tidewheel):
    asked = tidewheel()
    assert (asked.status, asked.err) == (2, "")
    assert asked.out == tidewheel("--help").out


def test_an_empty_store_says_what_to_do(tidewheel):
    assert "submit one: tidewheel submit -- echo hello" in tidewheel("tasks").err
    assert "start one: tidewheel worker" in tidewheel("workers").err
    assert "no queue has open tasks" in tidewheel("queues").err
    assert tidewheel("--json", "tasks").json == {"tasks": [], "next_before": None}


def test_nobody_else_may_look_into_the_state_directory(tidewheel):
    tidewheel("submit", "--", "true")
    tidewheel("worker", "--exit-when-idle")
    files = [path for path in tidewheel.state.rglob("*") if not path.is_symlink()]
    modes = {path: path.stat().st_mode & 0o777 for path in files}
    assert tidewheel.state.stat().st_mode & 0o777 == 0o700
    assert {path: oct(mode) for path, mode in modes.items() if mode & 0o077} == {}
    assert modes[tidewheel.state / "tidewheel.db"] == 0o600


@pytest.mark.parametrize("arguments", [["--version"], ["-m", "tidewheel", "--version"]])
def test_the_version(tidewheel, arguments):
    if arguments == ["--version"]:
        assert tidewheel(*arguments).out.startswith("tidewheel 0.")
    else:
        shown = subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        assert shown.stdout.startswith(b"tidewheel 0.")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["message", "--help"]])
def test_nothing_heavy_is_loaded_before_it_is_needed(arguments):
    look = (
        "import sys; from tidewheel.cli.main import run; run(sys.argv[1:]);"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    command = [sys.executable, "-c", look, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_help_names_every_command_and_each_command_helps(tidewheel):
    shown = tidewheel("--help").out
    listed = shown.partition("Definitions:\n")[2].partition("\n  First steps:")[0]
    commands = [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]
    assert commands == [
        *("init", "validate", "graph", "list", "config", "view", "rehearse", "convert"),
        *("register", "workflows"),
        *("run", "runs", "sbi", "blocks", "objects", "show", "why", "tree", "log", "tui"),
        *("trigger", "set", "remove", "hold", "release", "kill", "poll"),
        *("pause", "resume", "stop", "reload", "broadcast", "message", "ext-trigger"),
        *("submit", "tasks", "task", "events", "cancel", "resubmit", "queues"),
        *("workers", "worker", "monitor", "scheduler"),
        *("up", "server", "token", "login", "logout", "session", "notify"),
        *("verify", "audit", "export", "backup", "migrate", "completion"),
    ]
    ask = f"from tidewheel.cli.main import run; [run([c, '--help']) for c in {commands}]"
    helped = subprocess.run(
        [sys.executable, "-c", ask], capture_output=True, text=True, check=True
    )
    for command in commands:
        assert f"Usage: tidewheel {command}" in helped.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(tidewheel, shell):
    script = tidewheel("completion", shell).out
    assert f"_TIDEWHEEL_COMPLETE={shell}_complete" in script
    words = {"COMP_WORDS": "tidewheel wor", "COMP_CWORD": "wor" if shell == "fish" else "1"}
    completed = tidewheel(_TIDEWHEEL_COMPLETE=f"{shell}_complete", **words)
    assert {"worker", "workers"} <= set(completed.out.replace(",", " ").split())


def test_a_terminal_gets_colour_and_shapes_and_a_pipe_does_not(tidewheel):
    tidewheel("submit", "--id", "a", "--", "true")
    shown = tidewheel.on_terminal("tasks").out
    assert "\x1b[36m◔ ready" in shown
    piped = tidewheel("tasks").out
    assert "\x1b" not in piped
    assert "◔" not in piped


def test_a_narrow_terminal_keeps_ids_whole(tidewheel):
    task_id = tidewheel("submit", "--name", "x" * 30, "--", "true").word
    shown = tidewheel.on_terminal("tasks", columns=80).out
    assert task_id in shown
    assert "◔ ready" in shown
    assert "x" * 30 not in shown


PLAIN = "[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\n"


@pytest.fixture
def forecast(tidewheel):
    """A run of a workflow in a folder, and a task of the queue."""
    folder = tidewheel.folder / "forecast"
    folder.mkdir()
    (folder / "flow.cylc").write_text(PLAIN)
    assert tidewheel("run", "forecast", "--mode", "skip").status == 0
    tidewheel("submit", "--queue", "images", "--", "true")
    return "forecast/run1"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("run forecst", "Did you mean 'forecast'?"),
        ("run ./forecst", "Did you mean 'forecast'?"),
        ("show frecast", "Did you mean forecast? List all runs: tidewheel runs"),
        ("stop forecast/run9", "Did you mean forecast/run1? List all runs: tidewheel runs"),
        ("show nothing-like-it", "  List all runs: tidewheel runs"),
        ("run", "name a folder that contains a flow.cylc, such as forecast\n"),
        ("task 1/a", "of a run: tidewheel tree RUN"),
        ("cancel forecast/run1", "of a run: tidewheel tree RUN"),
        ("task nope", "  List all tasks: tidewheel tasks\n"),
        ("show forecast nosuch", "'nosuch' is neither a point nor a task of this run\n"),
        ("--store x.db runs", "; if x.db is a file, write sqlite:///x.db\n"),
        ("help", "use: tidewheel --help, or tidewheel COMMAND --help\n"),
    ],
)
@pytest.mark.usefixtures("forecast")
def test_a_name_that_means_nothing_is_answered_with_what_was_probably_meant(
    tidewheel, typed, said
):
    refused = tidewheel(*typed.split())
    assert refused.status == 2
    assert said in refused.err


@pytest.mark.usefixtures("forecast")
def test_a_queue_that_nobody_used_is_not_shown_as_if_it_were_there(tidewheel):
    said = tidewheel("queues", "imagse")
    assert said.err == "no task was in the queue imagse lately; did you mean images?\n"
    assert tidewheel("queues", "images").err == ""


def test_a_run_that_was_complete_is_not_said_to_have_completed_now(tidewheel, forecast):
    again = tidewheel("run", forecast)
    assert (
        again.out
        == "forecast/run1 was already complete (skip mode: no jobs run): 1 succeeded\n"
    )
    assert again.err.startswith("run a task again: tidewheel trigger forecast/run1 POINT/NAME")


def test_what_a_task_used_is_told_in_words(tidewheel):
    tidewheel("submit", "--id", "a", "--", "true")
    tidewheel("worker", "--exit-when-idle")
    page = tidewheel("task", "a").out
    assert "used " in page and "s of CPU time\n" in page and "cpu_seconds" not in page


def test_an_empty_folder_leads_to_an_example(tidewheel):
    refused = tidewheel("validate")
    assert refused.status == 2
    assert "or make one: tidewheel init NAME" in refused.out + refused.err
