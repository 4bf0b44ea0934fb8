"""Values that tasks return reach the tasks after them (R007), as people who run them see it."""

import hashlib
import json
import signal

import pytest

from tests.support.cli_fixture import BOTH_STORES, EVERYWHERE

FLOW = r"""
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 2
    [[graph]]
        P1 = model[-P1] & fetch => model => post
[runtime]
    [[fetch]]
        script = echo "{\"file\": \"obs $CYLC_TASK_CYCLE_POINT\"}" > "$TIDEWHEEL_OUTPUTS"
    [[model]]
        script = '''
            cp "$TIDEWHEEL_INPUTS" "$CYLC_WORKFLOW_SHARE_DIR/$CYLC_TASK_CYCLE_POINT"
            echo '{"path": "$(touch hacked) \u0027$HOME", "steps": 3}' > "$TIDEWHEEL_OUTPUTS"
        '''
    [[post]]
        script = printf '%s|%s\n' "$FORECAST" "$STEPS"
        [[[inputs]]]
            FORECAST = model.path
            STEPS = model.steps
""".replace("'''", '"""')


def printed(tidewheel, run, task):
    return tidewheel("log", run, task).out


@pytest.fixture
def folder(tidewheel):
    made = tidewheel.folder / "flow"
    made.mkdir()
    return made


@pytest.mark.req("R007-1", "R007-2")
def test_a_task_gets_what_its_parents_returned_as_a_file_and_as_variables(tidewheel, folder):
    (folder / "flow.cylc").write_text(FLOW)
    assert tidewheel("run", str(folder)).status == 0
    share = tidewheel.home / ".local/state/tidewheel/runs/flow/run1/share"
    assert json.loads((share / "1").read_text()) == {"fetch": {"file": "obs 1"}}
    model = {"path": "$(touch hacked) '$HOME", "steps": 3}
    assert json.loads((share / "2").read_text()) == {
        "fetch": {"file": "obs 2"},
        "1/model": model,
    }
    for point in (1, 2):  # no shell has read it
        assert printed(tidewheel, "flow", f"{point}/post") == "$(touch hacked) '$HOME|3\n"


MISSING = """
[scheduling]
    [[graph]]
        R1 = a => b
[runtime]
    [[a]]
        script = echo '{"other": 1}' > "$TIDEWHEEL_OUTPUTS"
    [[b]]
        script = echo "$P"
        [[[inputs]]]
            P = a.path
"""


@EVERYWHERE
@pytest.mark.req("R007-5")
def test_a_missing_value_stops_its_task_and_why_names_it_and_a_value_set_by_hand_mends_it(
    tidewheel, folder
):
    (folder / "flow.cylc").write_text(MISSING)
    with tidewheel.started("run", str(folder)) as run:
        run.read_until("1/b not started: it takes P from a.path, but 1/a has only other")
        run.read_until("stalled")
        [task] = tidewheel("why", "flow", "1/b", "--json").json["tasks"]
        assert "it takes P from a.path" in task["reasons"][-1]["text"]
        said = tidewheel("set", "flow", "1/a", "--value", "path=/new file").out
        assert (
            said == "1/a now has the given value of path, until its job returns another one\n"
        )
        tidewheel("trigger", "flow", "1/b")
        run.read_until("completed")
    assert printed(tidewheel, "flow", "1/b") == "/new file\n"


def test_a_value_that_is_no_value_is_refused_and_nothing_is_set(tidewheel, folder):
    (folder / "flow.cylc").write_text(MISSING)
    with tidewheel.started("run", str(folder)) as run:
        run.read_until("stalled")
        assert "Write NAME=VALUE" in tidewheel("set", "flow", "1/a", "--value", "path").err
        large = "path=" + "x" * 70_000
        assert "at most 65536" in tidewheel("set", "flow", "1/a", "--value", large).err
        tidewheel("stop", "flow", "--now")


RETRIED = """
[scheduling]
    [[graph]]
        R1 = a => b
[runtime]
    [[a]]
        execution retry delays = PT0S
        script = '''
            echo "{\\"try\\": $CYLC_TASK_SUBMIT_NUMBER}" > "$TIDEWHEEL_OUTPUTS"
            test $CYLC_TASK_TRY_NUMBER -gt 1 || test $CYLC_TASK_SUBMIT_NUMBER -gt 2
        '''
    [[b]]
        script = echo "$TRY"
        [[[inputs]]]
            TRY = a.try
""".replace("'''", '"""')


@BOTH_STORES
@pytest.mark.req("R007-6")
def test_a_retry_and_a_new_flow_hand_on_what_they_returned_themselves(tidewheel, folder):
    (folder / "flow.cylc").write_text(RETRIED)
    assert tidewheel("run", str(folder)).status == 0
    assert printed(tidewheel, "flow", "1/b") == "2\n"
    with tidewheel.started("run", "flow/run1", "--pause") as run:
        run.read_until("resumes")
        tidewheel("trigger", "flow", "1/a", "--reflow")
        tidewheel("resume", "flow")
        run.read_until("completed")
    assert printed(tidewheel, "flow", "1/b") == "3\n"


AGAIN = """
[scheduling]
    [[graph]]
        R1 = a? | a:fail? => b
[runtime]
    [[a]]
        script = '''
            test $CYLC_TASK_SUBMIT_NUMBER -lt 2 || exit $CODE
            echo '{"file": "OLD"}' > "$TIDEWHEEL_OUTPUTS"
        '''
        [[[environment]]]
            CODE = 0
    [[b]]
        script = echo "$FILE"
        [[[inputs]]]
            FILE = a.file
""".replace("'''", '"""')


@BOTH_STORES
@pytest.mark.req("R007-6")
@pytest.mark.parametrize("code", [0, 1])
def test_a_later_run_that_returned_nothing_hides_what_an_earlier_one_returned(
    tidewheel, folder, code
):
    (folder / "flow.cylc").write_text(AGAIN.replace("CODE = 0", f"CODE = {code}"))
    tidewheel("run", str(folder))
    assert printed(tidewheel, "flow", "1/b") == "OLD\n"
    with tidewheel.started("run", "flow/run1", "--pause") as run:
        run.read_until("resumes")
        tidewheel("trigger", "flow", "1/a", "--reflow")
        tidewheel("resume", "flow")
        run.read_until("1/b not started: it takes FILE from a.file, but 1/a returned no values")


@pytest.mark.req("R007-5")
def test_a_reload_that_adds_inputs_starts_nothing_without_them(tidewheel, folder):
    before = """
[scheduling]
    [[graph]]
        R1 = a & gate => b
[runtime]
    [[a, gate]]
        script = true
    [[gate]]
        script = sleep 600
    [[b]]
        script = echo "file=${FILE:-unset}"
"""
    (folder / "flow.cylc").write_text(before)
    with tidewheel.started("run", str(folder)) as run:
        run.read_until("1/a succeeded")
        after = before.replace("a & gate => b", "a => b") + (
            "        [[[inputs]]]\n            FILE = a.file\n"
        )
        (folder / "flow.cylc").write_text(after)
        tidewheel("reload", "flow")
        run.read_until("1/b not started: it takes FILE from a.file")
        tidewheel("stop", "flow", "--kill")


@pytest.mark.req("R007-2")
def test_values_outlive_the_scheduler_that_heard_them(tidewheel, folder):
    gate = tidewheel.folder / "gate"
    flow = MISSING.replace('"other": 1', '"path": "kept"').replace(
        "R1 = a => b", "R1 = a & slow => b"
    )
    slow = f"    [[slow]]\n        script = until [ -e {gate} ]; do sleep 0.05; done\n"
    (folder / "flow.cylc").write_text(flow + slow)
    with tidewheel.started("run", str(folder)) as run:
        run.read_until("1/a succeeded")
        run.send(signal.SIGKILL)
        run.wait()
    with tidewheel.started("run", "flow/run1") as run:
        gate.touch()
        run.read_until("completed")
    assert printed(tidewheel, "flow", "1/b") == "kept\n"


PYTHON = """
from dataclasses import dataclass
from pathlib import Path
from tidewheel import Workflow

flow = Workflow("etl", initial=1, final=1)

@dataclass
class Batch:
    rows: list[int]
    where: Path

@flow.task
def fetch(count: int) -> Batch:
    return Batch(list(range(count)), Path("/data"))

@flow.task
async def total(batch: Batch, scale: int = 1) -> int:
    print(batch.where, type(batch).__name__)
    return sum(batch.rows) * scale

@flow.task
def report(total, nothing):
    print("total is", total, nothing)

@flow.task
def quiet() -> None:
    return None

report(total(fetch(5), scale=10), nothing=quiet())
"""


@pytest.mark.req("R007-3")
def test_functions_take_what_others_return_as_arguments_of_the_annotated_types(tidewheel):
    path = tidewheel.folder / "etl.py"
    path.write_text(PYTHON)
    done = tidewheel("run", str(path))
    assert done.status == 0, done.err
    assert printed(tidewheel, "etl", "1/report") == "total is 100 None\n"
    assert printed(tidewheel, "etl", "1/total") == "/data Batch\n"


@pytest.mark.req("R007-3")
def test_an_argument_of_the_wrong_type_fails_its_job_with_both_sides(tidewheel):
    path = tidewheel.folder / "etl.py"
    path.write_text(PYTHON.replace("-> Batch:", "-> object:").replace('Path("/data")', "3"))
    assert tidewheel("run", str(path), "--abort-if-any-task-fails").status != 0
    assert "the argument batch is {'rows': [0, 1, 2, 3, 4], 'where': 3}" in (
        tidewheel("log", "etl", "1/total", "--err").out
    )


@pytest.mark.req("R007-3")
def test_a_value_that_json_cannot_hold_fails_its_task_if_another_takes_it(tidewheel):
    path = tidewheel.folder / "etl.py"
    path.write_text(PYTHON.replace("    return None\n", "    return object()\n"))
    assert tidewheel("run", str(path), "--abort-if-any-task-fails").status != 0
    assert "the function quiet returned a value that JSON cannot hold: a object" in (
        tidewheel("log", "etl", "1/quiet", "--err").out
    )


@pytest.mark.req("R007-3")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "    return None\n",
            "    raise SystemExit\n",
            "the function quiet ended with sys.exit() instead of returning the value "
            "that other tasks take",
        ),
        (
            "flow = ",
            "import os\nif 'TIDEWHEEL_TASK_ID' in os.environ: raise SystemExit(0)\nflow = ",
            "etl.py called sys.exit() while it was imported: 'quiet' did nothing",
        ),
        (
            "    return None\n",
            "    import os\n    os._exit(0)\n",
            "the function of quiet did not return: os._exit(), os.exec…() or a C library",
        ),
        (
            "    return None\n",
            "    import os\n    os.execvp('true', ['true'])\n",
            "start programs with subprocess.run(…, check=True)",
        ),
        (
            "    return None\n",
            "    import ctypes\n    ctypes.CDLL(None).exit(0)\n",
            "the function of quiet did not return",
        ),
        (
            "flow = ",
            "import os\nif 'TIDEWHEEL_TASK_ID' in os.environ: os._exit(0)\nflow = ",
            "the function of quiet did not return",
        ),
        (
            "    return None\n",
            "    import os\n    if os.fork():\n        os._exit(0)\n",
            "a process that quiet made with os.fork() returned from it, too",
        ),
    ],
)
def test_a_function_that_did_not_come_to_its_end_is_not_a_success(tidewheel, old, new, said):
    path = tidewheel.folder / "etl.py"
    path.write_text(PYTHON.replace(old, new, 1))
    assert tidewheel("run", str(path), "--abort-if-any-task-fails").status != 0
    assert said in tidewheel("log", "etl", "1/quiet", "--err").out


ENDINGS = """
import atexit, multiprocessing, os, sys
from tidewheel import Workflow

flow = Workflow("endings")

@flow.task(post_script="echo published", err_script="echo cleaned up", exit_script="echo well")
def vanishes():
    os._exit(0)

@flow.task(post_script="echo published")
def vanishes_too():
    os.execvp("true", ["true"])

@flow.task
def exits():
    sys.exit(0)

@flow.task(post_script="echo published", exit_script="echo well")
def ends_hard():
    atexit.register(os._exit, 0)

@flow.task
def forks():
    context = multiprocessing.get_context("fork")
    child = context.Process(target=print, args=("child",))
    child.start()
    child.join()
    if (pid := os.fork()) == 0:
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0

with flow.cycle("R1"):
    flow.place(vanishes, vanishes_too, exits, ends_hard, forks)
"""


@pytest.mark.req("R007-3")
def test_after_a_function_that_did_not_return_no_later_part_of_its_job_runs(tidewheel):
    path = tidewheel.folder / "endings.py"
    path.write_text(ENDINGS)
    ran = tidewheel("run", str(path), "--stall-timeout", "PT0S")
    assert ran.status == 1
    for task in ("exits", "ends_hard", "forks"):
        assert f" 1/{task} succeeded" in ran.out
    for task in ("vanishes", "vanishes_too"):
        assert f" 1/{task} failed: exit status 1" in ran.out
        assert "published" not in printed(tidewheel, "endings", f"1/{task}")
    assert printed(tidewheel, "endings", "1/ends_hard") == "published\nwell\n"
    errors = tidewheel("log", "endings", "1/vanishes", "--err").out
    assert "cleaned up" in errors and "the function of vanishes did not return" in errors


FAILING = """
from tidewheel import Workflow

flow = Workflow("failing")


@flow.task
def look():
    return {}["nothere"]


with flow.cycle("R1"):
    flow.place(look)
"""


@pytest.mark.req("R007-13")
def test_the_log_of_a_function_that_failed_shows_where_its_author_is_to_look(tidewheel):
    (tidewheel.folder / "failing.py").write_text(FAILING)
    assert tidewheel("run", "failing.py", "--stall-timeout", "0").status != 0
    told = tidewheel("log", "failing", "1/look")
    assert "job.out is empty; job.err says:" in told.err
    traceback = told.out.splitlines()
    assert traceback[0] == "Traceback (most recent call last):"
    assert traceback[1].endswith('/failing.py", line 9, in look')
    assert traceback[-1] == "KeyError: 'nothere'"
    assert tidewheel("log", "failing", "1/look", "--err").out == told.out
    assert tidewheel("log", "failing", "1/look", "--file", "out").out == ""


OUTPUTS = r"""
[scheduling]
    [[graph]]
        R1 = '''
            a:ready => b
            b => a_goes_on
            a => c
        '''
[runtime]
    [[a]]
        script = '''
            tidewheel message --output ready --value file=early --value n=1
            until [ -e "$CYLC_WORKFLOW_SHARE_DIR/go" ]; do sleep 0.05; done
            echo '{"n": 2}' > "$TIDEWHEEL_OUTPUTS"
        '''
        [[[outputs]]]
            ready = it is ready
    [[b, c]]
        script = cat "$TIDEWHEEL_INPUTS"; echo "$N"
        [[[inputs]]]
            N = a.n
    [[a_goes_on]]
        script = touch "$CYLC_WORKFLOW_SHARE_DIR/go"
""".replace("'''", '"""')


@EVERYWHERE
@pytest.mark.req("R007-1")
def test_an_output_carries_values_to_its_children_before_the_task_ends(tidewheel, folder):
    (folder / "flow.cylc").write_text(OUTPUTS)
    ran = tidewheel("run", str(folder))
    assert ran.status == 0, ran.out
    told, number = printed(tidewheel, "flow", "1/b").splitlines()
    assert (json.loads(told), number) == ({"a": {"file": "early", "n": 1}}, "1")
    told, number = printed(tidewheel, "flow", "1/c").splitlines()
    assert (json.loads(told), number) == ({"a": {"file": "early", "n": 2}}, "2")
    values = tidewheel("show", "flow", "1/a", "--json").json["tasks"][0]["submissions"][0]
    assert values["values"] == {"file": "early", "n": 2}


RERUN = r"""
[scheduling]
    [[graph]]
        R1 = a:started => b
[runtime]
    [[a]]
        script = '''
            if (( CYLC_TASK_SUBMIT_NUMBER > 1 )); then
                until [ -e "$CYLC_WORKFLOW_SHARE_DIR/go" ]; do sleep 0.05; done
            else
                echo '{"n": 1}' > "$TIDEWHEEL_OUTPUTS"
            fi
        '''
    [[b]]
        script = '''
            cat "${TIDEWHEEL_INPUTS:-/dev/null}"
            (( CYLC_TASK_SUBMIT_NUMBER == 1 )) || touch "$CYLC_WORKFLOW_SHARE_DIR/go"
        '''
""".replace("'''", '"""')


def test_a_task_that_runs_again_hides_its_earlier_values_from_its_beginning(tidewheel, folder):
    (folder / "flow.cylc").write_text(RERUN)
    assert tidewheel("run", str(folder)).status == 0
    with tidewheel.started("run", "flow/run1", "--pause") as run:
        run.read_until("resumes")
        tidewheel("trigger", "flow", "1/a", "--reflow")
        tidewheel("resume", "flow")
        run.read_until("completed")
    assert printed(tidewheel, "flow", "1/b") == ""


@pytest.mark.req("R007-5")
def test_a_rehearsal_assumes_values_or_plays_with_those_that_are_given(tidewheel, folder):
    (folder / "flow.cylc").write_text(FLOW)
    assumed = tidewheel("rehearse", str(folder))
    assert assumed.status == 0
    assert "assumed: model returns the value path" in assumed.out
    given = ("--value", "model.path=x", "--value", "model.steps=[1, 2]")
    known = tidewheel("rehearse", str(folder), *given)
    assert known.status == 0
    assert "model returns" not in known.out
    lacking = tidewheel("rehearse", str(folder), "--value", "model.path=x")
    assert lacking.status == 1
    assert "1/post is not started: it takes STEPS from model.steps" in lacking.out
    assert "1/model has only path" in lacking.out


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ("path=x", "TASK.NAME=VALUE"),
        ("modl.path=x", "modl"),
        ("model.path", "TASK.NAME=VALUE"),
        ("model.path=123456789012345678901", "64 bits"),
    ],
)
def test_a_value_for_a_rehearsal_that_nothing_could_return_is_refused(
    tidewheel, folder, value, seen
):
    (folder / "flow.cylc").write_text(FLOW)
    refused = tidewheel("rehearse", str(folder), "--value", value)
    assert refused.status == 2
    assert seen in refused.err


PARAMETERS = """
[task parameters]
    m = x, y
[scheduling]
    [[graph]]
        R1 = process<m> => publish<m>
[runtime]
    [[process<m>]]
        script = echo "{\\"path\\": \\"file of $CYLC_TASK_PARAM_m\\"}" > "$TIDEWHEEL_OUTPUTS"
    [[publish<m>]]
        script = echo "$FILE and $FIRST"
        [[[inputs]]]
            FILE = process<m>.path
"""


@pytest.mark.req("R007-1")
def test_an_input_names_the_parent_of_the_same_parameter(tidewheel, folder):
    (folder / "flow.cylc").write_text(PARAMETERS.replace(" and $FIRST", ""))
    assert tidewheel("run", str(folder)).status == 0
    for m in ("x", "y"):
        assert printed(tidewheel, "flow", f"1/publish_{m}") == f"file of {m}\n"


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("process<m-1>.path", "an offset has no meaning here"),
        ("process<n>.path", "n"),
        ("process<m.path", "the brackets < > do not match"),
    ],
)
def test_an_input_with_a_parameter_that_means_nothing_is_a_finding(
    tidewheel, folder, written, seen
):
    (folder / "flow.cylc").write_text(PARAMETERS.replace("process<m>.path", written))
    judged = tidewheel("validate", str(folder))
    assert judged.status == 2
    assert seen in judged.out + judged.err


def test_the_variable_of_an_input_cannot_be_broadcast_and_the_answer_says_what_can_be_done(
    tidewheel, folder
):
    (folder / "flow.cylc").write_text(MISSING)
    with tidewheel.started("run", str(folder)) as run:
        run.read_until("not started")
        given = ("broadcast", "flow", "--namespace", "b", "--set", "[environment]P=x")
        refused = tidewheel(*given)
        assert refused.status == 2
        assert "b takes it from a.path" in refused.err
        assert "set POINT/a --value path=" in refused.err.replace("Set", "set")
        other = tidewheel(*given[:-1], "[environment]OTHER=x")
        assert other.status == 0, other.err
        tidewheel("stop", "flow", "--now")


def test_show_tells_the_value_that_was_set_by_hand(tidewheel, folder):
    (folder / "flow.cylc").write_text(MISSING)
    with tidewheel.started("run", str(folder)) as run:
        run.read_until("not started")
        tidewheel("set", "flow", "1/a", "--value", "path=by hand")
        told = tidewheel("show", "flow", "1/a", "--json").json["tasks"][0]
        assert told["values"] == {"other": 1, "path": "by hand"}
        assert "by hand" in tidewheel("show", "flow", "1/a").out
        tidewheel("stop", "flow", "--now")


FILES = """
[scheduling]
    [[graph]]
        R1 = a => b & c
[runtime]
    [[a]]
        script = '''
            head -c 100000 /dev/zero > "$CYLC_WORKFLOW_SHARE_DIR/large"
            echo "beside" > near
            large=$CYLC_WORKFLOW_SHARE_DIR/large
            printf '{"data": {"$file": "%s"}, "near": {"$file": "near"}}' "$large" \\
                > "$TIDEWHEEL_OUTPUTS"
        '''
    [[b]]
        script = wc -c < "$DATA"
        [[[inputs]]]
            DATA = a.data
    [[c]]
        script = cat "$TIDEWHEEL_INPUTS"
""".replace("'''", '"""')


@pytest.mark.req("R007-4")
def test_a_value_may_be_a_file_which_is_recorded_with_size_and_sha256(tidewheel, folder):
    (folder / "flow.cylc").write_text(FILES)
    ran = tidewheel("run", str(folder))
    assert ran.status == 0, ran.out
    run = tidewheel.home / ".local/state/tidewheel/runs/flow/run1"
    assert printed(tidewheel, "flow", "1/b") == "100000\n"
    told = json.loads(printed(tidewheel, "flow", "1/c"))["a"]
    zeros = hashlib.sha256(bytes(100_000)).hexdigest()
    assert told["data"] == {
        **{"$file": str(run / "share/large"), "size": 100_000, "sha256": zeros}
    }
    assert told["near"]["$file"] == str(run / "work/1/a/near")
    assert told["near"]["size"] == len("beside\n")


@pytest.mark.req("R007-4", "R007-5")
@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ("rm", "is not there"),
        ("truncate -s 5", "has another size than the 100000 bytes"),
        ("printf x | dd conv=notrunc status=none of=", "has changed since"),
    ],
)
@EVERYWHERE
def test_a_file_that_is_not_as_it_was_fails_its_reader_and_why_says_so(
    tidewheel, folder, change, seen
):
    sign = "" if change.endswith("=") else " "
    hurt = (
        f'[[hurt]]\n        script = {change}{sign}"$CYLC_WORKFLOW_SHARE_DIR/large"\n    [[b]]'
    )
    text = FILES.replace("R1 = a => b & c", 'R1 = """a => hurt\na & hurt => b"""')
    (folder / "flow.cylc").write_text(text.replace("[[b]]", hurt))
    with tidewheel.started("run", str(folder)) as run:
        run.read_until("stalled")
        why = tidewheel("why", "flow", "1/b").out
        tidewheel("stop", "flow", "--now")
    assert "which 1/a returned" in why
    assert seen in why


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/etc/hostname", "may belong to another task"),
        (f"{'../' * 30}etc/hostname", "may belong to another task"),
        ("nothing", "cannot be recorded: No such file"),
        (".", "cannot be recorded"),
        ("link", "may belong to another task"),
    ],
)
def test_a_file_that_is_not_the_jobs_own_is_no_value(tidewheel, folder, path, seen):
    text = f"""
[scheduling]
    [[graph]]
        R1 = a
[runtime]
    [[a]]
        pre-script = ln -s /etc/hostname link
        script = echo '{{"x": {{"\\u0024file": "{path}"}}}}' > $TIDEWHEEL_OUTPUTS
"""
    (folder / "flow.cylc").write_text(text)
    with tidewheel.started("run", str(folder)) as run:
        run.read_until("stalled")
        why = tidewheel("why", "flow", "1/a").out
        tidewheel("stop", "flow", "--now")
    assert seen in why


def test_a_message_on_behalf_of_a_job_carries_values_too(tidewheel, folder):
    text = OUTPUTS.replace(
        "tidewheel message --output ready --value file=early --value n=1", ""
    )
    (folder / "flow.cylc").write_text(text)
    with tidewheel.started("run", str(folder)) as run:
        run.read_until("1/a started")
        given = ("message", "flow", "1/a", "--output", "ready")
        refused = tidewheel(*given, "--value", "n")
        assert (refused.status, "has no name" in refused.err) == (2, True)
        said = tidewheel(*given, "--value", "n=5")
        assert said.status == 0, said.err
        run.read_until("completed")
    told, number = printed(tidewheel, "flow", "1/b").splitlines()
    assert (json.loads(told), number) == ({"a": {"n": 5}}, "5")
    assert printed(tidewheel, "flow", "1/c").splitlines()[1] == "2"
