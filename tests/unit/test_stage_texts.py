"""The texts between a stage and its worker: specs, logs, what jobs say, what they hand on."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.core.queue.task import TaskId
from tidewheel.errors import BadValues
from tidewheel.runners.containers.logs import (
    FOLDER,
    LINE_BYTES_MAX,
    SAID_BYTES_MAX,
    LineReader,
    SaidValues,
    StdoutMessage,
    gather_values,
    read_said,
)
from tidewheel.runners.containers.project import NAME_LENGTH_MAX, project_name
from tidewheel.runners.containers.stage_spec import (
    BadStage,
    read_stage_spec,
    runner_named,
    stand_in,
)
from tidewheel.runners.job_directory import OUTPUTS_NAME

COMPOSE = "services: {a: {image: x}}"


def spec(**fields):
    return json.dumps({"runner": "swarm", "compose": COMPOSE, **fields})


def test_a_spec_names_its_runner_or_none():
    assert runner_named(spec()) == "swarm"
    for other in (None, "{}", "[]", '"runner"', '{"runner": 3}', '{"runner": "x"'):
        assert runner_named(other) is None


def test_what_is_not_the_runners_is_the_jobs():
    assert json.loads(read_stage_spec(spec(beams=4, name="n")).rest) == {
        "beams": 4,
        "name": "n",
    }


@pytest.mark.parametrize(
    ("node", "wanted"),
    [
        ({"labels": {"zone": "a", "gpu": True}}, [("zone", "a"), ("gpu", "True")]),
        ({"labels": ["zone=a", "fast"]}, [("zone", "a"), ("fast", None)]),
        ({"label": "zone==a"}, [("zone", "a")]),
    ],
)
def test_labels_of_nodes_are_read_as_people_write_them(node, wanted):
    assert list(read_stage_spec(spec(node=node)).labels) == wanted


@pytest.mark.parametrize(
    "bad",
    [
        {"compose": None},
        {"compose": " "},
        {"compose": "x" * 300_000},
        {"node": []},
        {"node": {"labels": 3}},
        {"node": {"constraints": "node.role == worker"}},
        {"node": {"constraints": ["$(id)"]}},
        {"node": {"constraints": ["a == b\nc"]}},
        {"node": {"constraints": ["a == b"] * 65}},
        {"environment": "production"},
        {"environment": {"A": 1}},
        {"environment": {"A-B": "1"}},
    ],
)
def test_a_spec_that_cannot_be_run_is_refused(bad):
    with pytest.raises(
        BadStage, match=r'expected|accepted|at most|not a list|must be \{"NAME": "VALUE"\}'
    ):
        read_stage_spec(spec(**bad))


def test_the_command_of_a_stage_fails_where_nobody_knows_better():
    assert stand_in("compose").endswith("exit 1")


@pytest.mark.slow
@given(st.text(min_size=1), st.integers(1, 99), st.integers(1, 46))
def test_a_project_has_a_valid_short_name_whatever_its_task_is_called(task, attempt, longest):
    name = project_name("store", TaskId(task), attempt, longest)
    assert len(name) + 1 + longest <= NAME_LENGTH_MAX
    assert name.replace("-", "").isalnum() and name.isascii() and name.islower()
    assert name != project_name("store", TaskId(task), attempt + 1, longest)


@pytest.mark.slow
@given(st.lists(st.binary(max_size=40)), st.integers(1, 7))
def test_lines_are_the_same_however_they_arrive(texts, size):
    lines = [text.replace(b"\n", b"").replace(b"\r", b"") for text in texts]
    whole = b"".join(b"2026-01-01T00:00:%02dZ %s\n" % (n % 60, t) for n, t in enumerate(lines))
    reader, read = LineReader(), []
    for start in range(0, len(whole), size):
        read += reader.take(whole[start : start + size])
    assert [line.text for line in [*read, *reader.finish()]] == lines


def test_lines_that_were_read_before_are_passed_over():
    reader = LineReader(after=b"2026-01-01T00:00:01Z")
    lines = b"2026-01-01T00:00:01Z old\n2026-01-01T00:00:02Z new\nerror from docker\n"
    assert [line.text for line in reader.take(lines)] == [b"new"]
    assert reader.latest == b"2026-01-01T00:00:02Z"


def test_a_line_without_end_takes_no_more_memory_than_it_may():
    reader = LineReader()
    read = reader.take(b"2026-01-01T00:00:01Z " + b"x" * (3 * LINE_BYTES_MAX))
    read += reader.take(b"y\n")
    assert b"".join(line.text for line in read) == b"x" * (3 * LINE_BYTES_MAX) + b"y"


def test_what_a_line_says():
    assert read_said('{"text": "a", "output": "b", "progress": 1}') == StdoutMessage(
        "a", "b", 1.0, {}
    )
    assert read_said('{"values": {"n": 1}}') == StdoutMessage("", None, None, {"n": 1})
    for nothing in ("", "text", "[]", '{"text": 3}', '{"progress": 2}', '{"output": []}'):
        assert read_said(nothing) is None


def test_values_are_read_from_a_file_only(tmp_path):
    folder = tmp_path / FOLDER
    folder.mkdir()
    secret = tmp_path / "secret"
    secret.write_text('{"key": 1}')
    (folder / OUTPUTS_NAME).symlink_to(secret)
    with pytest.raises(BadValues, match="cannot be read"):
        gather_values(tmp_path, {})
    (folder / OUTPUTS_NAME).unlink()
    (folder / OUTPUTS_NAME).write_text('{"a": 1, "b": 1}')
    assert json.loads(gather_values(tmp_path, {"b": 2})) == {"a": 1, "b": 2}
    assert json.loads((tmp_path / OUTPUTS_NAME).read_text()) == {"a": 1, "b": 2}
    with pytest.raises(BadValues, match="at most 65536"):
        gather_values(tmp_path, {"c": "x" * 70_000})


def test_the_last_word_on_a_value_counts_and_there_is_an_end_to_words(tmp_path):
    said = SaidValues()
    for number in range(3):
        said.hear({"a": number}, "line")
    assert json.loads(said.gather(tmp_path)) == {"a": 2}
    said.hear({"b": 1}, "x" * SAID_BYTES_MAX)
    with pytest.raises(BadValues, match="bytes of values were sent"):
        said.gather(tmp_path)
