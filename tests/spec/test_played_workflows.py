"""`tidewheel.testing`: what authors of workflows see in tests of their own (issue 19)."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tidewheel import Workflow
from tidewheel.errors import BadSetting, Refused
from tidewheel.formats.python_api import InvalidDefinition
from tidewheel.testing import failed, play, submit_failed, succeeded

OCEAN = """
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 2
    [[graph]]
        P1 = model[-P1] & fetch => model => publish
[runtime]
    [[fetch]]
        script = true
    [[MODELS]]
        execution retry delays = PT1M
    [[model]]
        inherit = MODELS
        script = true
        [[[inputs]]]
            OBSERVATIONS = fetch.file
            BEFORE = model[-P1].forecast
    [[publish]]
        script = true
"""
SIP = """
schema_version: "2.0"
stages:
  - {id: ingest, version: 1.0.0, type: processing, timeout: 20m, resources_required: []}
  - {id: solve, version: 1.0.0, type: processing, timeout: 20m, resources_required: [],
     dependencies: [{type: stage, value: ingest, condition: complete}]}
"""


def folder(tmp_path: Path, text: str = OCEAN, name: str = "ocean") -> Path:
    place = tmp_path / name
    place.mkdir()
    (place / "flow.cylc").write_text(text)
    return place


def once(tmp_path: Path, graph: str, runtime: str = "") -> Path:
    tasks = "[[root]]\nscript = true\n"
    return folder(
        tmp_path, f'[scheduling]\n[[graph]]\nR1 = """{graph}"""\n[runtime]\n{tasks}{runtime}'
    )


# What ran, and in which order.


def test_a_workflow_is_played_to_its_end(tmp_path):
    played = play(folder(tmp_path))
    assert played.status == "completed"
    assert played.order == [
        "1/fetch",
        "2/fetch",
        "1/model",
        "1/publish",
        "2/model",
        "2/publish",
    ]
    assert played.seconds == 40
    assert played["2/model"].parents == ("1/model", "2/fetch")
    assert (played["2/model"].start_seconds, played["2/model"].end_seconds) == (20, 30)
    assert played.stalled == {}


def test_a_task_that_fails_once_is_tried_again(tmp_path):
    played = play(str(folder(tmp_path)), outcomes={"1/model": failed(times=1)})
    assert played.status == "completed"
    assert [one.status for one in played.tries("1/model")] == ["failed", "succeeded"]
    assert [one.try_number for one in played.tries("1/model")] == [1, 2]
    assert played["1/model"].waited_for == "retry"
    assert len(played.tries("2/model")) == 1


def test_a_task_that_always_fails_stalls_the_run_with_reasons(tmp_path):
    played = play(folder(tmp_path), outcomes={"1/fetch": failed()})
    assert played.status == "stalled"
    assert not played.ran("1/model")
    assert list(played.stalled) == ["1/fetch"]
    assert "failed" in " ".join(played.stalled["1/fetch"])
    assert "1/fetch stalls" in str(played)


def test_the_last_outcome_that_fits_counts_and_a_family_means_its_members(tmp_path):
    played = play(folder(tmp_path), outcomes={"MODELS": failed(), "1/model": succeeded()})
    assert played["1/model"].status == "succeeded"
    assert played["2/model"].status == "failed"
    assert len(played.tries("2/model")) == 2


def test_how_long_tasks_take_is_given(tmp_path):
    lengths = {"fetch": "2m", "publish": 1}
    assert play(folder(tmp_path), lengths=lengths).seconds == 120 + 10 + 10 + 1


def test_custom_outputs_are_made_as_they_are_given(tmp_path):
    runtime = "[[a]]\n[[[outputs]]]\nx = x is there\ny = y is there\n"
    place = once(tmp_path, "a:x? => b\na:y? => c\na? => d", runtime)
    assert play(place).order == ["1/a", "1/b", "1/c", "1/d"]
    assert play(place, outcomes={"a": succeeded(outputs=["x"])}).order == ["1/a", "1/b", "1/d"]
    played = play(place, outcomes={"a": failed(outputs="y")})
    assert played.order == ["1/a", "1/c"]


def test_a_job_that_cannot_be_submitted_has_not_run(tmp_path):
    runtime = "[[a]]\nsubmission retry delays = PT1M\n"
    place = once(tmp_path, "a => b", runtime)
    played = play(place, outcomes={"a": submit_failed(times=1)})
    assert [one.status for one in played.tries("1/a")] == ["submit-failed", "succeeded"]
    assert played.tries("1/a")[0].start_seconds is None
    played = play(place, outcomes={"a": submit_failed()})
    assert (played.status, played.ran("1/a")) == ("stalled", False)


# Values.


@pytest.mark.req("R007-1")
def test_tasks_get_the_values_that_others_are_given(tmp_path):
    values = {"fetch": {"file": "obs.nc"}, "1/model": {"forecast": "one.nc"}}
    played = play(folder(tmp_path), values=values | {"2/model": {"forecast": "two.nc"}})
    assert played.status == "completed"
    assert played["2/model"].variables == {"OBSERVATIONS": "obs.nc", "BEFORE": "one.nc"}
    assert played["1/model"].variables == {"OBSERVATIONS": "obs.nc"}
    assert played["2/publish"].inputs == {"model": {"forecast": "two.nc"}}


@pytest.mark.req("R007-5")
def test_a_value_that_nobody_gives_stalls_the_run_as_it_would(tmp_path):
    played = play(folder(tmp_path), values={"1/fetch": {"file": "obs.nc"}})
    assert played.status == "stalled"
    assert played["1/model"].status == "succeeded"
    assert not played.ran("2/model")
    told = "; ".join(played.stalled["2/model"])
    assert "it takes OBSERVATIONS from fetch.file, but 2/fetch returned no values" in told


def test_without_values_what_tasks_take_is_assumed_to_be_there(tmp_path):
    played = play(folder(tmp_path))
    assert played["2/model"].variables == {}


def test_values_that_no_store_would_keep_are_refused(tmp_path):
    place = folder(tmp_path)
    with pytest.raises(Refused, match="65536"):
        play(place, values={"fetch": {"file": "x" * 70_000}})
    with pytest.raises(Refused, match="the value of fetch"):
        play(place, values={"fetch": {"file": object()}})


LISTED = """
[task parameters]
    file = list.files max 3
[scheduling]
    [[graph]]
        R1 = list => process<file> => join
[runtime]
    [[list, process<file>]]
        script = true
    [[join]]
        script = true
        [[[inputs]]]
            PATHS = process<file>.path
"""


@pytest.mark.req("R007-2")
@pytest.mark.parametrize("count", [0, 1, 3])
def test_each_element_of_a_list_that_is_given_is_played(tmp_path, count):
    values = {"list": {"files": list(range(count))}, "process*": {"path": "x"}}
    played = play(folder(tmp_path, LISTED), values=values)
    assert played.status == "completed"
    elements = [f"1/process_file{number}" for number in range(count)]
    assert [one.id for one in played.tasks if "process" in one.id] == elements
    assert json.loads(played["1/join"].variables["PATHS"]) == ["x"] * count
    assert played.ran("1/process_file2") == (count == 3)
    with pytest.raises(Refused):
        played.ran("1/process_file3")  # beyond the most that there can be


@pytest.mark.req("R007-2")
@pytest.mark.parametrize("files", ["a", None, [1, 2, 3, 4]])
def test_a_list_that_cannot_be_used_fails_its_task_as_in_a_run(tmp_path, files):
    values = {"list": {} if files is None else {"files": files}}
    played = play(folder(tmp_path, LISTED), values=values)
    assert played.status == "stalled"
    [(task, reasons)] = played.stalled.items()
    assert task == "1/list"
    said = "which process<file> needs|4 elements of files for process<file>; at most 3 are"
    assert re.search(said, str(reasons))
    assert "1/list failed" in str(reasons)


def test_a_task_that_failed_last_has_no_values(tmp_path):
    place = once(tmp_path, "a:finish => b", "[[b]]\n[[[inputs]]]\nX = a.x\n")
    played = play(place, outcomes={"a": failed()}, values={"a": {"x": 1}})
    assert not played.ran("1/b")


# Definitions of every kind.


@dataclass
class Batch:
    rows: list[int]


def etl() -> Workflow:
    flow = Workflow("etl")
    fetch = flow.task("fetch")(read_rows)
    total = flow.task("total")(add_rows)
    total(fetch(5), scale=10)
    return flow


def read_rows(count: int) -> Batch:
    return Batch(list(range(count)))


def add_rows(batch: Batch, scale: int = 1) -> int:
    return sum(batch.rows) * scale


@pytest.mark.req("R007-3")
def test_a_workflow_in_python_is_played_with_the_values_of_its_functions():
    played = play(etl(), values={"fetch": Batch([1, 2]), "total": 3})
    assert played.status == "completed"
    assert played["1/total"].arguments == {"batch": {"rows": [1, 2]}}


def test_a_python_file_is_played(tmp_path):
    file = tmp_path / "tide.py"
    file.write_text(
        'from tidewheel import Workflow\nflow = Workflow("tide", initial=1, final=3)\n'
        'a = flow.task("a", script="true")\nwith flow.cycle("P1"):\n    a[-1] >> a\n'
    )
    assert play(file).order == ["1/a", "2/a", "3/a"]
    assert play(file, final=2).order == ["1/a", "2/a"]
    assert play(file, until=1).order == ["1/a"]


def test_a_sip_definition_is_played(tmp_path):
    file = tmp_path / "vis-1.0.0.yaml"
    file.write_text(SIP)
    for stage in ("ingest", "solve"):
        place = tmp_path / "stages" / stage / "1.0.0"
        place.mkdir(parents=True)
        (place / "script.sh").write_text("true\n")
    played = play(file, outcomes={"ingest": failed()}, values={})
    assert played.status != "completed"
    assert not played.ran("1/solve")
    assert play(file).order == ["1/ingest", "1/solve"]


def test_variables_of_a_template_are_given(tmp_path):
    graph = "#!Jinja2\n[scheduling]\n[[graph]]\nR1 = {{ NAME }}\n"
    text = f"{graph}[runtime]\n[[{{{{ NAME }}}}]]\nscript = true"
    assert play(folder(tmp_path, text), variables={"NAME": "b"}).order == ["1/b"]


def test_the_virtual_clock_begins_where_it_is_told(tmp_path):
    text = """
[scheduler]
    UTC mode = True
[scheduling]
    initial cycle point = 20300101T00Z
    final cycle point = 20300101T01Z
    [[graph]]
        PT1H = @wall_clock => a
[runtime]
    [[a]]
        script = true
"""
    place = folder(tmp_path, text)
    first, second = play(place).tasks
    assert (first.start_seconds, second.start_seconds) == (0, 3600)
    assert {one.start_seconds for one in play(place, at="20300102T00Z").tasks} == {0}
    assert play(place, outcomes={"2030-01-01T01Z/a": failed()}).stalled


# Mistakes in the test itself.


def test_a_name_that_the_workflow_does_not_have_is_no_answer(tmp_path):
    place = folder(tmp_path)
    for given in ({"outcomes": {"modle": failed()}}, {"values": {"1/modle": {}}}):
        with pytest.raises(Refused, match="did you mean 'model'"):
            play(place, **given)
    played = play(place)
    with pytest.raises(Refused, match="did you mean 'model'"):
        played.ran("1/modle")
    with pytest.raises(Refused, match="1/model"):
        played.ran("model")
    with pytest.raises(KeyError, match="7/model did not run"):
        played["7/model"]
    assert not played.ran("7/model")


def test_an_output_that_a_task_does_not_have_is_refused(tmp_path):
    with pytest.raises(Refused, match="no output 'x'"):
        play(folder(tmp_path), outcomes={"model": succeeded(outputs=["x"])})


def test_an_outcome_that_no_task_met_is_told(tmp_path):
    played = play(folder(tmp_path), outcomes={"9/model": failed()})
    assert played.unused == ["9/model"]
    assert "the outcome of 9/model applied to no task" in str(played)


@pytest.mark.parametrize("times", [0, -1, 10**9])
def test_a_task_fails_a_number_of_times(times):
    with pytest.raises(BadSetting, match="times"):
        failed(times=times)


def test_a_definition_with_errors_is_refused_with_all_of_them(tmp_path):
    with pytest.raises(InvalidDefinition) as refused:
        play(folder(tmp_path, "[scheduling]\n[[graph]]\nR1 = a =>\n"))
    assert refused.value.findings
    with pytest.raises(InvalidDefinition, match="there is no"):
        play(tmp_path / "nothing.py")


def test_too_much_is_not_played_for_ever(tmp_path):
    text = "[scheduling]\ncycling mode = integer\ninitial cycle point = 1\n[[graph]]\nP1 = a"
    text += "\n[runtime]\n[[a]]\nscript = true"
    assert len(play(folder(tmp_path, text)).order) == 10
