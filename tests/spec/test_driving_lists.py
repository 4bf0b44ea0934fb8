"""Which list elements are made of, under a real scheduler and virtual time (issue 19)."""

import re
from pathlib import Path

import pytest

from tests.kit.driven_run import DrivenRun
from tidewheel.core.operator.verbs import (
    Broadcast,
    Hold,
    Pause,
    Remove,
    Resume,
    Set,
    Stop,
    Trigger,
)
from tidewheel.errors import Refused
from tidewheel.services.run_service import RunService

FLOW = '''
[task parameters]
    file = list.files max 5
[scheduling]
    [[queues]]
        [[[few]]]
            limit = 1
            members = process<file>
    [[graph]]
        R1 = """
            list => process<file> => plot<file> => join
            list => join
        """
[runtime]
    [[list, process<file>, plot<file>]]
        script = true
    [[join]]
        script = true
        [[[inputs]]]
            FILES = list.files
'''


@pytest.fixture
def flow(tmp_path: Path):
    made: list[DrivenRun] = []

    def make(text: str = FLOW, **options: object) -> DrivenRun:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(DrivenRun(folder, text, **options))
        return made[-1]

    yield make
    for run in made:
        run.close()


def file_of(run: DrivenRun, job: str) -> str:
    """What a job was given as its element."""
    found = re.search(r"CYLC_TASK_PARAM_file=(\S+)", run.jobs[job])
    assert found, run.jobs[job]
    return found[1].strip("'\"")


def why(run: DrivenRun, *ids: str):
    arguments = {"run": run.view.name, "ids": list(ids)}

    def ask(store, _):
        return RunService(store, run.home).look("why", arguments)

    return run.look(ask)["tasks"][0]["reasons"]


# ---- in a flow the first list counts ----


@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("again", [["x", "y"], ["x"], ["x", "y", "z"]])
def test_elements_that_start_after_the_list_was_returned_again_read_the_first(
    flow, again, crashes
):
    run = flow()
    run.ends("1/list", files=["a", "b"])
    assert file_of(run, "1/process_file0/01") == "a"
    run.gives(Trigger(ids=("1/list",), flow="1"))
    run.ends("1/list", files=again, other=7)
    if crashes:
        run.crash()
    run.ends("1/process_file0")
    assert file_of(run, "1/process_file1/01") == "b"
    run.ends("1/plot_file0", "1/process_file1")
    assert file_of(run, "1/plot_file1/01") == "b"
    run.ends("1/plot_file1")
    assert '["a", "b"]' in run.jobs["1/join/01"]
    assert "flow 1 continues with the" in run.log
    assert run.ends("1/join").status == "completed"


def test_elements_that_start_while_the_list_is_made_again_read_the_first(flow):
    run = flow()
    run.ends("1/list", files=["a", "b"])
    run.gives(Trigger(ids=("1/list",), flow="1"))
    run.ends("1/process_file0")
    assert file_of(run, "1/process_file1/01") == "b"
    assert file_of(run, "1/plot_file0/01") == "a"


def test_the_first_list_is_found_by_a_scheduler_that_heard_the_second_alone(flow):
    run = flow()
    run.ends("1/list", files=["a", "b"])
    run.gives(Trigger(ids=("1/list",), flow="1"))
    run.crash().ends("1/list", files=["x", "y"]).ends("1/process_file0")
    assert file_of(run, "1/process_file1/01") == "b"


def test_a_list_that_is_forgotten_is_replaced_by_the_next(flow):
    run = flow()
    run.gives(Pause())
    run.ends("1/list", files=["a", "b", "c"])
    run.gives(Remove(ids=("1/list",)))
    run.gives(Resume())
    run.gives(Trigger(ids=("1/list",), flow="1"))
    run.ends("1/list", files=["x", "y"]).ends("1/process_file0")
    assert file_of(run, "1/process_file1/01") == "y"
    run.ends("1/process_file1", "1/plot_file0").ends("1/plot_file1").ends("1/join")
    assert run.status == "completed"
    assert not any("file2" in one for one in run.submitted)


def test_a_list_whose_elements_have_run_is_not_forgotten(flow):
    """What another list had in their places would be passed over."""
    run = flow()
    run.ends("1/list", files=["a", "b"])
    with pytest.raises(Refused, match=r"1/process_file0 has run.*trigger 1/list --reflow"):
        run.gives(Remove(ids=("1/list",)))
    run.ends("1/process_file0").ends("1/process_file1")
    with pytest.raises(Refused, match="1/process_file0 has run"):
        run.gives(Remove(ids=("1/list",)))


def test_a_list_is_forgotten_in_a_flow_in_which_none_of_its_elements_has_run(flow):
    run = flow()
    run.ends("1/list", files=["a"]).ends("1/process_file0").ends("1/plot_file0")
    run.gives(Pause())
    run.gives(Trigger(ids=("1/list",), flow="new"))
    run.ends("1/join").ends("1/list", files=["x", "y"])
    with pytest.raises(Refused, match="1/process_file0 has run"):
        run.gives(Remove(ids=("1/list",), flow="1"))
    run.gives(Remove(ids=("1/list",), flow="2"))


def test_a_list_is_mended_by_hand_if_it_stays_as_long(flow):
    run = flow()
    run.ends("1/list", files=["a", "b"])
    run.gives(Trigger(ids=("1/list",), flow="1"))
    run.ends("1/list", files=["x", "y"])
    for text in ('files=["c"]', 'files=["c", "d", "e"]', "files=7"):
        with pytest.raises(Refused, match="has returned 2 elements of files"):
            run.gives(Set(ids=("1/list",), values=(text,)))
    run.gives(Set(ids=("1/list",), values=('files=["a", "mended"]',)))
    run.ends("1/process_file0")
    assert file_of(run, "1/process_file1/01") == "mended"


def test_a_reflow_reads_its_own_list(flow):
    run = flow()
    run.ends("1/list", files=["a"]).ends("1/process_file0").ends("1/plot_file0")
    run.gives(Trigger(ids=("1/list",), flow="new"))
    run.ends("1/join")
    run.ends("1/list", files=["x", "y"])
    assert file_of(run, "1/process_file0/02") == "x"
    run.ends("1/process_file0").ends("1/process_file1")
    assert file_of(run, "1/process_file1/01") == "y"
    run.ends("1/plot_file0", "1/plot_file1").ends("1/join")
    assert '["x", "y"]' in run.jobs["1/join/02"]
    assert run.status == "completed"


def test_a_reflow_of_elements_alone_reads_the_list_of_their_flow_and_joins_them(flow):
    run = flow(FLOW.partition("        [[[inputs]]]")[0].replace("list => join", ""))
    run.ends("1/list", files=["x", "y"]).ends("1/process_file0").ends("1/process_file1")
    run.ends("1/plot_file0", "1/plot_file1")
    run.gives(Trigger(ids=("1/process<file>",), flow="new", all_at_point=True))
    assert [file_of(run, f"1/process_file{one}/02") for one in (0, 1)] == ["x", "y"]
    run.ends("1/join", "1/process_file0", "1/process_file1").ends("1/plot_file0")
    assert "1/join/02" not in run.submitted
    run.ends("1/plot_file1")
    assert "1/join/02" in run.submitted


# ---- a source that is not run ----


def skipped(flow) -> DrivenRun:
    run = flow(
        FLOW.replace("list => process", "a => list => process")
        + "    [[a]]\n    script = true\n"
    )
    run.gives(Broadcast(namespaces=("list",), settings=("run mode=skip",)))
    return run


def test_real_jobs_never_work_on_elements_that_nobody_returned(flow):
    run = skipped(flow)
    run.ends("1/a")
    assert run.status == "stalled"
    assert run.submitted == ["1/a/01"]
    assert "1/list is not run (run mode skip): 1/list returned no list files" in run.log
    [reason] = [one for one in why(run, "1/list") if "returned no list" in one["text"]]
    assert "--value 'files=[…]' --out succeeded" in reason["commands"][0]
    run.gives(Set(ids=("1/list",), values=('files=["a"]',), outputs=("succeeded",)))
    assert file_of(run, "1/process_file0/01") == "a"


def test_a_source_that_is_skipped_has_the_list_that_was_set(flow):
    run = skipped(flow)
    run.gives(Set(ids=("1/list",), values=('files=["a", "b"]',)))
    run.ends("1/a")
    assert file_of(run, "1/process_file0/01") == "a"
    run.crash().ends("1/process_file0")
    assert file_of(run, "1/process_file1/01") == "b"


def test_a_list_that_is_set_empty_has_no_elements(flow):
    run = skipped(flow)
    run.gives(Set(ids=("1/list",), values=("files=[]",)))
    run.ends("1/a")
    assert run.running == ["1/join/1"]


def test_elements_that_are_skipped_too_are_assumed(flow):
    run = skipped(flow)
    for name in ("process<file>", "plot<file>"):
        run.gives(Broadcast(namespaces=(name,), settings=("run mode=skip",)))
    run.ends("1/a")
    assert run.submitted == ["1/a/01"]
    assert "1/plot_file1" in run.log


# ---- several lists ----


TWO = """
[task parameters]
    a = list.files max 1
    b = list.files
    c = list.others
[scheduling]
    [[graph]]
        R1 = list => p<a> & p<b> & p<c> => join
[runtime]
    [[list, p<a>, p<b>, p<c>, join]]
        script = true
"""


def test_two_mapped_tasks_over_one_list_and_one_over_another(flow):
    run = flow(TWO)
    run.ends("1/list", files=["x"], others=[1, 2])
    assert run.running == ["1/p_a0/1", "1/p_b0/1", "1/p_c0/1", "1/p_c1/1"]
    assert "continues with" not in run.log


def test_a_list_is_as_long_as_the_least_of_what_is_made_of_it_accepts(flow):
    run = flow(TWO)
    run.ends("1/list", files=["x", "y"], others=[1])
    assert run.status == "stalled"
    assert "1/list returned 2 elements of files for p<a>; at most 1" in run.log
    played = flow(TWO, mode="simulation").waits(30.0).waits(30.0).waits(30.0)
    assert "1/p_b0" in played.log
    assert "1/p_b1" not in played.log
    assert "1/p_c1" in played.log


# ---- what is refused ----


def test_elements_are_named_before_and_beyond_their_list_in_vain(flow):
    run = flow()
    assert why(run, "1/process_file0")[0]["text"] == (
        "there is no 1/process_file0 yet: the number of elements is known when 1/list succeeds"
    )
    for command in (
        Hold(ids=("1/process<file>",)),
        Remove(ids=("1/process<file>",)),
        Set(ids=("1/process<file>",), outputs=("succeeded",)),
        Trigger(ids=("1/process<file>",)),
    ):
        with pytest.raises(Refused, match=r"no element of 1/process<file> yet: .* 1/list"):
            run.gives(command)
    for command in (
        Hold(ids=("1/process_file0",)),
        Stop(after_task="1/process_file0"),
        Set(ids=("1/process_file0",), values=("x=1",)),
    ):
        with pytest.raises(Refused, match=r"no 1/process_file0 yet: .* 1/list"):
            run.gives(command)
    run.ends("1/list", files=["a"])
    beyond = "there is no 1/process_file1: 1/list returned a list of length 1"
    assert [one["text"] for one in why(run, "1/process_file1")] == [beyond]
    for command in (
        Trigger(ids=("1/process_file1",)),
        Hold(ids=("1/process_file1",)),
        Remove(ids=("1/process_file1",)),
        Stop(after_task="1/process_file1"),
        Set(ids=("1/process_file1",), outputs=("succeeded",)),
    ):
        with pytest.raises(
            Refused, match="no 1/process_file1: 1/list returned a list of length 1"
        ):
            run.gives(command)


def test_an_empty_list_has_no_element_that_could_be_named(flow):
    run = flow()
    run.ends("1/list", files=[])
    with pytest.raises(
        Refused, match="no element of 1/process<file>: 1/list returned an empty list"
    ):
        run.gives(Hold(ids=("1/process<file>",)))


def test_a_list_that_cannot_be_used_starts_once(flow):
    run = flow()
    run.ends("1/list", files=7)
    assert run.log.count("1/list/01:running(runahead)") <= 1
    assert run.log.count("started") == 1
