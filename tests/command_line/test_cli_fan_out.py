"""A task for each element of a list that another one returns (issue 19), as people see it."""

import json
import signal

import pytest

from tests.support.cli_fixture import EVERYWHERE
from tests.support.patience import eventually_told

FLOW = r"""
[task parameters]
    file = list.files max 50
[scheduling]
    [[graph]]
        R1 = '''
            list => process<file> => plot<file>
            plot<file> => join
        '''
[runtime]
    [[list]]
        script = echo '{"files": ["a.nc", "b c.nc", {"x": 1}]}' > "$TIDEWHEEL_OUTPUTS"
    [[process<file>]]
        script = '''
            echo "doing $CYLC_TASK_PARAM_file"
            echo "{\"path\": \"out of $CYLC_TASK_NAME\"}" > "$TIDEWHEEL_OUTPUTS"
        '''
    [[plot<file>]]
        script = '''
            echo "$P for $TIDEWHEEL_TASK_PARAM_file"; cat "$TIDEWHEEL_INPUTS"
            echo "{\"n\": 1}" > "$TIDEWHEEL_OUTPUTS"
        '''
        [[[inputs]]]
            P = process<file>.path
    [[join]]
        script = echo "$ALL"; cat "$TIDEWHEEL_INPUTS"
        [[[inputs]]]
            ALL = plot<file>.n
""".replace("'''", '"""')


def printed(tidewheel, run, task):
    return tidewheel("log", run, task).out


@pytest.fixture
def folder(tidewheel):
    made = tidewheel.folder / "flow"
    made.mkdir()
    return made


@EVERYWHERE
def test_each_element_gets_its_own_value_and_the_join_gets_all(tidewheel, folder):
    (folder / "flow.cylc").write_text(FLOW)
    assert tidewheel("run", str(folder)).status == 0
    assert printed(tidewheel, "flow", "1/process_file1") == "doing b c.nc\n"
    told = printed(tidewheel, "flow", "1/plot_file2").splitlines()
    assert told[0] == 'out of process_file2 for {"x": 1}'
    assert json.loads(told[1]) == {
        "list": {"file": {"x": 1}},
        "process<file>": {"path": "out of process_file2"},
    }
    everything = printed(tidewheel, "flow", "1/join").splitlines()
    assert everything[0] == "[1, 1, 1]"
    assert json.loads(everything[1]) == {"plot<file>": [{"n": 1}] * 3}


@EVERYWHERE
def test_a_list_without_elements_completes_the_join(tidewheel, folder):
    (folder / "flow.cylc").write_text(FLOW.replace('["a.nc", "b c.nc", {"x": 1}]', "[]"))
    assert tidewheel("run", str(folder)).status == 0
    assert printed(tidewheel, "flow", "1/join").startswith("[]\n")


BAD = {
    '{"other": 1}': "1/list returned no list files, which process<file>, plot<file> needs",
    '{"files": "a"}': "which process<file>, plot<file> needs, but not as a list",
    json.dumps({"files": list(range(51))}): "1/list returned 51 elements of files",
}


@EVERYWHERE
@pytest.mark.parametrize("returned", BAD)
def test_a_list_that_cannot_be_used_fails_its_task_and_is_mended_by_hand(
    tidewheel, folder, returned
):
    flow = FLOW.replace('{"files": ["a.nc", "b c.nc", {"x": 1}]}', returned)
    (folder / "flow.cylc").write_text(flow)
    with tidewheel.started("run", str(folder)) as run:
        run.read_until("stalled")
        [task] = tidewheel("why", "flow", "1/list", "--json").json["tasks"]
        assert BAD[returned] in task["reasons"][-1]["text"]
        refused = tidewheel("set", "flow", "1/list", "--out", "succeeded").err
        assert "give the list first" in refused or BAD[returned] in refused
        assert "known when 1/list succeeds" in tidewheel("why", "flow", "1/join").out
        tidewheel("set", "flow", "1/list", "--value", 'files=["by hand"]', "--out", "succeeded")
        run.read_until("completed")
    assert printed(tidewheel, "flow", "1/process_file0") == "doing by hand\n"


def test_an_element_that_no_variable_can_hold_is_not_started(tidewheel, folder):
    (folder / "flow.cylc").write_text(FLOW.replace('"a.nc"', r'"a\u0000"'))
    with tidewheel.started("run", str(folder)) as run:
        run.read_until("1/process_file0 not started: its element of list.files has a NUL")
        run.read_until("stalled")
        why = tidewheel("why", "flow", "1/join").out
        assert "1 more of the 3 elements of plot<file>" in why
        tidewheel("stop", "flow", "--now")


@EVERYWHERE
def test_all_elements_can_be_named_by_the_mapped_task(tidewheel, folder):
    (folder / "flow.cylc").write_text(FLOW.replace('echo "doing', 'sleep 600; echo "doing'))
    with tidewheel.started("run", str(folder)) as run:
        run.read_until("1/process_file2 started")
        assert tidewheel("kill", "flow", "1/process<file>").status == 0
        run.read_until("stalled")
        assert "1/process_file9" in tidewheel("trigger", "flow", "1/process_file9").err
        tidewheel("stop", "flow", "--now")


MANY = r"""
[task parameters]
    n = list.numbers
[scheduling]
    [[queues]]
        [[[default]]]
            limit = 10
    [[graph]]
        R1 = list => square<n> => join
[runtime]
    [[list]]
        script = echo "{\"numbers\": [$(seq -s , 0 59)]}" > "$TIDEWHEEL_OUTPUTS"
    [[square<n>]]
        script = echo "{\"square\": $((N * N))}" > "$TIDEWHEEL_OUTPUTS"
        [[[environment]]]
            N = $CYLC_TASK_PARAM_n
    [[join]]
        script = echo "$ALL"
        [[[inputs]]]
            ALL = square<n>.square
"""


def test_a_run_that_is_killed_again_and_again_runs_each_element_once(tidewheel, folder):
    (folder / "flow.cylc").write_text(MANY)
    first = ["run", str(folder)]
    for heard in ("1/list succeeded", "square_n1", "square_n2", "square_n3", "square_n4"):
        with tidewheel.started(*first) as run:
            run.read_until(heard)
            run.send(signal.SIGKILL)
            run.wait()
        first = ["run", "flow/run1"]
    with tidewheel.started(*first) as run:
        run.read_until("completed")
    squares = json.loads(printed(tidewheel, "flow", "1/join"))
    assert squares == [number * number for number in range(60)]


JOINED = """
[task parameters]
    file = list.files max 3
[scheduling]
    [[graph]]
        R1 = list => process<file> => join
[runtime]
    [[list]]
        script = echo '{"files": [1, 2], "others": [1]}' > "$TIDEWHEEL_OUTPUTS"
    [[process<file>]]
        script = echo '{"n": 1}' > "$TIDEWHEEL_OUTPUTS"
    [[join]]
        script = echo "$ALL"
        [[[inputs]]]
            ALL = process<file>.n
"""


@EVERYWHERE
def test_a_join_that_is_run_again_alone_gets_all_elements_again(tidewheel, folder):
    (folder / "flow.cylc").write_text(JOINED)
    assert tidewheel("run", str(folder)).status == 0
    again = tidewheel("trigger", "flow", "1/join", "--run")
    assert again.status == 0, again.out
    # Where a server's scheduler reopens the run, the command does not wait for the job.
    eventually_told(
        lambda: "02 succeeded" in tidewheel("tree", "flow").out, "the second job's end"
    )
    assert printed(tidewheel, "flow", "1/join") == "[1, 1]\n"


@pytest.mark.parametrize(
    ("written", "instead"), [("list.files", "list.others"), ("max 3", "max 1")]
)
def test_a_reload_that_would_leave_a_list_without_its_elements_is_refused(
    tidewheel, folder, written, instead
):
    text = JOINED.replace("R1 = list", "R1 = list => gate => process<file>\n        R1 = list")
    text += "    [[gate]]\n        script = false\n"
    (folder / "flow.cylc").write_text(text)
    with tidewheel.started("run", str(folder)) as run:
        run.read_until("stalled")
        (folder / "flow.cylc").write_text(text.replace(written, instead))
        refused = tidewheel("reload", "flow")
        assert refused.status != 0
        assert "1/list has succeeded" in refused.err
        tidewheel("stop", "flow", "--now")


@pytest.mark.parametrize(
    ("graph", "more", "seen"),
    [
        ("R1 = list\nP1 = foo => process<file> => join", "", "but list does not"),
        ("R1 = list => process<file> => join", "workflow = sub", "list is a run"),
        ("R1 = list => process<file> => join", "run mode = skip", "list is skipped"),
    ],
)
def test_a_mapped_task_without_a_list_is_a_finding(tidewheel, folder, graph, more, seen):
    (folder / "flow.cylc").write_text(
        "[task parameters]\nfile = list.files\n[scheduling]\ncycling mode = integer\n"
        f"initial cycle point = 1\nfinal cycle point = 2\n[[graph]]\n{graph}\n"
        f"[runtime]\n[[foo, process<file>, join]]\nscript = true\n[[list]]\n"
        f"{more or 'script = true'}\n"
    )
    judged = tidewheel("validate", str(folder))
    assert judged.status == 2
    assert seen in judged.out + judged.err


CHECKED = """
[task parameters]
    file = list.files
[scheduling]
    [[graph]]
        R1 = list => spoil => process<file>
[runtime]
    [[list]]
        script = '''
            file=$CYLC_WORKFLOW_SHARE_DIR/a
            echo good > "$file"
            printf '{"files": [{"$file": "%s"}]}' "$file" > "$TIDEWHEEL_OUTPUTS"
        '''
    [[spoil]]
        script = echo spoilt > "$CYLC_WORKFLOW_SHARE_DIR/a"
    [[process<file>]]
        script = cat "$TIDEWHEEL_INPUTS"
""".replace("'''", '"""')


def test_an_element_that_is_a_file_which_has_changed_is_not_worked_on(tidewheel, folder):
    (folder / "flow.cylc").write_text(CHECKED)
    assert tidewheel("run", str(folder), "--stall-timeout", "0").status == 1
    assert "has another size" in tidewheel("log", "flow", "1/process_file0", "--err").out
