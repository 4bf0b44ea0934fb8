"""Tasks of a queue read what the tasks that they need have told, in commands and handlers."""

import json
import signal

import pytest

from tests.support.patience import eventually

HANDLERS = """
import tidewheel

handlers = tidewheel.Handlers()


@handlers.register("list")
def list_files(spec, job):
    job.value("folder", "raw")
    return {"files": ["x.nc", "y.nc"]}


@handlers.register("count")
async def count(spec, job):
    return {"count": len(job.inputs["list"]["files"]), "folder": job.inputs["list"]["folder"]}


@handlers.register("number")
def number(spec, job):
    return 42


@handlers.register("stranger")
def stranger(spec, job):
    return job.inputs["nobody"]
"""


@pytest.fixture
def with_handlers(tidewheel):
    (tidewheel.folder / "mine.py").write_text(HANDLERS)
    return lambda: tidewheel("worker", "--handlers", "mine:handlers", "--once")


def values_of(tidewheel, task_id):
    return tidewheel("task", task_id, "--json").json["values"]


def test_a_command_finds_the_values_of_what_it_needs_in_a_file_by_id(tidewheel):
    tidewheel(
        "submit", "--id", "a", "--", "sh", "-c", 'echo "{\\"n\\": 1}" >$TIDEWHEEL_OUTPUTS'
    )
    tidewheel("submit", "--id", "b", "--", "true")
    tidewheel(
        *("submit", "--id", "c", "--needs", "a", "--needs", "b"),
        *("--command", 'cat "$TIDEWHEEL_INPUTS"'),
    )
    tidewheel(
        *("submit", "--id", "d", "--needs", "b"),
        *("--command", 'echo "${TIDEWHEEL_INPUTS:-nothing}"'),
    )
    assert tidewheel("worker", "--once").status == 0
    assert json.loads(tidewheel("task", "c", "--log", "out").out) == {"a": {"n": 1}}
    assert tidewheel("task", "d", "--log", "out").out == "nothing\n"


def test_a_handler_reads_inputs_and_its_return_and_told_values_are_values(
    tidewheel, with_handlers
):
    tidewheel("submit", "--id", "list", "--handler", "list")
    tidewheel("submit", "--id", "count", "--handler", "count", "--needs", "list")
    tidewheel("submit", "--id", "number", "--handler", "number")
    with_handlers()
    assert values_of(tidewheel, "list") == {"folder": "raw", "files": ["x.nc", "y.nc"]}
    assert values_of(tidewheel, "count") == {"count": 2, "folder": "raw"}
    assert values_of(tidewheel, "number") == {"return": 42}


def test_a_handler_that_asks_for_a_value_that_is_not_there_is_told_which_are(
    tidewheel, with_handlers
):
    tidewheel("submit", "--id", "number", "--handler", "number")
    tidewheel("submit", "--id", "x", "--handler", "stranger", "--needs", "number")
    with_handlers()
    [error] = tidewheel("task", "x", "--json").json["task"]["errors"]
    assert error["code"] == "KeyError"
    assert "no values of task 'nobody'" in error["description"]
    assert "there are values of: 'number'" in error["description"]


def test_inputs_that_are_too_many_for_a_job_are_told_and_nothing_is_started(tidewheel):
    large = "x" * 60_000
    ids = [f"t{number}" for number in range(20)]
    tidewheel("submit", "--id", "seed", "--", "true")
    for one in ids:
        tidewheel(
            *("submit", "--id", one),
            *("--command", f'echo \'{{"x": "{large}"}}\' > $TIDEWHEEL_OUTPUTS'),
        )
    needs = [word for one in ids for word in ("--needs", one)]
    tidewheel("submit", "--id", "all", *needs, "--", "true")
    tidewheel("worker", "--once")
    [error] = tidewheel("task", "all", "--json").json["task"]["errors"]
    assert "at most 1048576 are passed on" in error["description"]


def test_a_message_hands_its_values_to_the_tasks_that_hang_on_its_output(tidewheel):
    telling = (
        "tidewheel message --output ready --value file=x.nc --value n=[1,2]"
        " && tidewheel message --value n=3"
    )
    tidewheel("submit", "--id", "a", "--command", f"{telling} && exit 1")
    tidewheel(
        *("submit", "--id", "b", "--needs", "a:ready"),
        *("--command", 'cat "$TIDEWHEEL_INPUTS"'),
    )
    tidewheel("worker", "--once")
    told = json.loads(tidewheel("task", "b", "--log", "out").out)
    assert told["a"]["file"] == "x.nc"
    assert values_of(tidewheel, "a") == {"file": "x.nc", "n": 3}


def test_a_value_of_a_message_without_a_name_or_that_is_too_large_is_refused(tidewheel):
    command = (
        "tidewheel message --value nothing;"
        ' tidewheel message --value "n=$(head -c 70000 /dev/zero | tr \\\\0 x)"'
    )
    tidewheel("submit", "--id", "a", "--command", command)
    tidewheel("worker", "--once")
    errors = tidewheel("task", "a", "--log", "err").out
    assert "Write NAME=VALUE" in errors
    assert "at most 65536 are accepted" in errors


def test_a_file_of_a_queue_task_is_checked_when_its_reader_starts(tidewheel):
    told = """echo data > x; echo '{"x": {"$file": "x"}}' > "$TIDEWHEEL_OUTPUTS" """
    tidewheel("submit", "--id", "a", "--command", told)
    reads = ("--command", 'cat "$TIDEWHEEL_INPUTS"')
    tidewheel("submit", "--id", "b", "--needs", "a", *reads)
    tidewheel("worker", "--once")
    file = json.loads(tidewheel("task", "b", "--log", "out").out)["a"]["x"]
    assert file["size"] == len("data\n")
    with open(file["$file"], "a") as there:
        there.write("more")
    tidewheel("submit", "--id", "c", "--needs", "a", *reads)
    tidewheel("worker", "--once")
    [error] = tidewheel("task", "c", "--json").json["task"]["errors"]
    assert "which a returned, has changed since" in error["description"]


def test_a_handler_may_return_a_file_of_its_directory(tidewheel):
    (tidewheel.folder / "mine.py").write_text("""
import tidewheel

handlers = tidewheel.Handlers()


@handlers.register("write")
def write(spec, job):
    (job.directory / "x").write_text("data")
    return {"x": {"$file": "x"}, "count": 1}
""")
    tidewheel("submit", "--id", "a", "--handler", "write")
    tidewheel("worker", "--handlers", "mine:handlers", "--once")
    assert values_of(tidewheel, "a")["x"]["size"] == len("data")


def test_a_file_in_a_message_is_refused_by_its_reader_because_nobody_recorded_it(tidewheel):
    told = """tidewheel message --output ready --value 'x={"$file": "/etc/hostname"}'"""
    tidewheel("submit", "--id", "a", "--command", told)
    tidewheel("submit", "--id", "b", "--needs", "a:ready", "--", "true")
    tidewheel("worker", "--once")
    [error] = tidewheel("task", "b", "--json").json["task"]["errors"]
    assert "has no size and sha256" in error["description"]


def test_a_value_that_was_told_outlives_the_worker_that_is_killed_before_the_end(tidewheel):
    told, go = tidewheel.folder / "told", tidewheel.folder / "go"
    command = (
        f"tidewheel message --output ready --value n=1 && touch {told};"
        f" until [ -e {go} ]; do sleep 0.02; done; echo '{{\"m\": 2}}' > $TIDEWHEEL_OUTPUTS"
    )
    tidewheel("submit", "--id", "a", "--command", command)
    with tidewheel.started("worker") as first:
        eventually(told.exists, "the value is told")
        first.send(signal.SIGKILL)
        first.wait()
    with tidewheel.started("worker") as second:
        second.read_until("adopted")
        go.touch()
        second.read_until("job.ended")
        second.send(signal.SIGTERM)
        assert second.wait().status == 0
    assert values_of(tidewheel, "a") == {"n": 1, "m": 2}
