"""Runs of stages read like stages: by their names, without points, flows and runahead."""

import re

import pytest

DEFINITION = """\
schema_version: "2.0"
stages:
  - {id: ingest, version: 1.0.0, type: setup, timeout: 60s, resources_required: []}
  - id: image
    version: 1.0.0
    type: processing
    timeout: 60s
    resources_required: []
    dependencies:
      - {type: stage, value: ingest, condition: complete}
  - id: stack
    version: 1.0.0
    type: processing
    timeout: 60s
    resources_required: []
    dependencies:
      - {type: stage, value: image, condition: complete}
      - {type: buffer_object, value: vis.1, condition: present}
  - id: tidy
    version: 1.0.0
    type: cleanup
    timeout: 60s
    resources_required: []
    dependencies:
      - {type: stage, value: stack, condition: ended}
"""
FILE = "maps-1.0.0.yaml"
# What nobody of a telescope has asked for: a point before a name, flows, runahead.
CYCLES = re.compile(
    r"(?<![\w./])1/[a-z]|\bflow\b(?! )|\bflow \d|runahead|\bpoints?\b|object@|list@"
)


@pytest.fixture
def maps(tidewheel, stage):
    (tidewheel.folder / FILE).write_text(DEFINITION)
    for name in ("ingest", "stack", "tidy"):
        stage(name, "script.sh", f"echo {name} works\n")
    stage("image", "script.sh", "echo no visibilities >&2\nexit 3\n")
    return FILE


@pytest.fixture
def stalled(tidewheel, maps):
    assert tidewheel("objects", "post", "vis.1").status == 0  # else the run waits for it
    return tidewheel("run", maps)


def test_a_run_tells_its_stages_by_name(stalled):
    assert "ingest succeeded\n" in stalled.out
    assert "image failed: exit status 3" in stalled.out
    assert "  image failed (exit 3)" in stalled.out
    assert "    tidewheel trigger maps/run1 image    # run it now\n" in stalled.out
    assert "buffer object vis.1 is there\n" in stalled.out
    assert "maps/run1 stalled" in stalled.out and "1 failed, 1 succeeded" in stalled.out


@pytest.mark.parametrize(
    "words",
    [
        ("show", "maps"),
        ("show", "maps", "image"),
        ("show", "maps", "stack"),
        ("why", "maps", "image", "stack", "tidy"),
        ("tree", "maps"),
        ("trigger", "maps", "image", "--dry-run"),
        ("hold", "maps", "stack", "--dry-run"),
    ],
)
def test_nothing_that_is_told_of_such_a_run_has_points_or_flows(tidewheel, stalled, words):
    said = tidewheel(*words)
    assert said.status == 0, said.err
    assert CYCLES.findall(said.out + stalled.out + stalled.err) == []


@pytest.mark.usefixtures("stalled")
def test_why_says_what_a_stage_needs_in_words(tidewheel):
    said = tidewheel("why", "maps", "stack", "tidy").out
    assert "stack needs the success of image; image failed" in said
    assert "tidy needs the end of stack" in said
    assert said.count("tidy needs") == 1


def test_why_names_the_object_for_which_a_stage_waits_and_how_it_is_posted(tidewheel, maps):
    with tidewheel.started("run", maps) as running:
        running.read_until("image failed")
        said = tidewheel("why", "maps", "stack").out
        assert "stack needs buffer object vis.1, which is not there yet" in said
        assert "tidewheel objects post vis.1" in said
        assert CYCLES.findall(said) == []
        assert tidewheel("objects", "post", "vis.1").status == 0
        running.read_until("buffer object vis.1 is there")
        running.wait()


@pytest.mark.usefixtures("stalled")
def test_ids_for_programs_stay_as_they_are(tidewheel):
    [task] = tidewheel("why", "maps", "image", "--json").json["tasks"]
    assert task["id"] == "1/image"
    shown = tidewheel("show", "maps", "--json").json
    assert [one["id"] for one in shown["causes"]] == ["1/image"]
    assert shown["stages"] is True


@pytest.mark.usefixtures("stalled")
@pytest.mark.parametrize("name", ["image", "image:failed", "im*", "1/image", "image/01"])
def test_a_stage_is_named_by_its_name_with_a_state_a_glob_or_as_before(tidewheel, name):
    told = tidewheel("show", "maps", name, "--json").json["tasks"]
    assert [one["id"] for one in told] == ["1/image"]
    assert "no visibilities" in tidewheel("log", "maps", "image", "--err").out


@pytest.mark.usefixtures("stalled")
def test_a_verb_takes_the_name_of_a_stage_and_answers_with_it(tidewheel):
    said = tidewheel("set", "maps", "image", "--run")
    assert said.status == 0, said.err
    assert "stack succeeded\n" in said.out
    assert "tidy succeeded\n" in said.out
    assert CYCLES.findall(said.out + said.err) == []


@pytest.mark.usefixtures("stalled")
def test_a_name_that_no_stage_has_is_refused_with_those_that_there_are(tidewheel):
    near = tidewheel("trigger", "maps", "imag")
    assert near.status != 0 and "there is no stage imag" in near.err
    assert "Did you mean image?" in near.err
    far = tidewheel("why", "maps", "xxxxxxxx")
    assert "There are ingest, image, stack, tidy" in far.err


def test_the_graph_a_list_and_a_rehearsal_have_stages_and_objects(tidewheel, maps):
    drawn = tidewheel("graph", maps).out
    assert "after image & buffer object vis.1" in drawn
    assert "after the end of stack" in drawn
    played = tidewheel("rehearse", maps, "--timeline").out
    assert "buffer object vis.1" in played
    for said in (drawn, played):
        assert not re.search(r"(?<![\w.])1/[a-z]", said)


@pytest.mark.usefixtures("stalled")
def test_the_log_of_a_run_names_stages(tidewheel):
    said = tidewheel("log", "maps").out
    assert "[image/01:running] => failed" in said
    assert CYCLES.findall(said) == []
