"""`tidewheel convert`, and what people with files of SIP's version 1 are told."""

import json
import os

import pytest

from tests.support.cli_fixture import EVERYWHERE
from tests.support.json_page import promised, shape
from tests.support.sip_version_1 import COMPOSE, block_1, definition_1, folder_1, sbi_1, stage_1
from tests.support.workflow_folders import put

FILE = "mock_1.0.0.json"


def files_in(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def old(tidewheel):
    """A folder of version 1: a definition of two stages, and a request for it."""
    put(tidewheel.folder / "old", folder_1("a", "b"))
    given = {name: {"duration": 1} for name in "ab"}
    workflow = {"id": "mock", "version": "1.0.0", "parameters": given}
    put(tidewheel.folder, {"sbi.json": json.dumps(sbi_1(block_1(workflow=workflow)))})
    return tidewheel.folder / "old"


@EVERYWHERE
@pytest.mark.req("R004-53")
def test_a_version_1_workflow_is_converted_registered_and_asked_for(tidewheel, old):
    before = files_in(old)
    told = tidewheel("validate", f"old/{FILE}")
    assert told.status == 2
    assert f"tidewheel convert {FILE}" in told.out
    made = tidewheel("convert", f"old/{FILE}")
    assert made.status == 0, made
    assert (
        "mock/1.0.0; it can be registered and run; each request must give duration" in made.out
    )
    assert made.out.endswith("Then: tidewheel register old/converted\n")
    assert {path: one for path, one in files_in(old).items() if path in before} == before
    assert tidewheel("register", "old/converted").status == 0
    asked = tidewheel("sbi", "submit", "sbi.json")
    assert asked.status == 0, asked
    assert "SBI-20181116-sip-0000: accepted, 1 block" in asked.out
    assert "it is read as 2.0" in asked.err
    # Written as 2.0 it is the same request.
    assert tidewheel("convert", "sbi.json").status == 0
    again = tidewheel("sbi", "submit", "converted/sbi.json")
    assert again.status == 0
    assert "already accepted" in again.out
    assert again.err == ""


def test_a_folder_is_converted_whole_and_other_files_are_passed_over(tidewheel, old):
    put(old, {"sbi.json": json.dumps(sbi_1()), "services.json": '{"x": 1}'})
    put(tidewheel.folder / "lost", folder_1("a") | {FILE: definition_1(stage_1("a", x=1))})
    put(old, {"new-1.0.0.yaml": "schema_version: '2.0'\nstages: []\n"})
    made = tidewheel("convert", "old", "--to", "new", "--json")
    assert made.status == 0, made
    told = made.json
    assert (told["to"], told["written"]) == ("new", True)
    kinds = {one["file"]: (one["kind"], one["valid"]) for one in told["converted"]}
    assert kinds == {FILE: ("definition", True), "sbi.json": ("request", True)}
    assert told["unchanged"] == ["new-1.0.0.yaml"]
    assert told["others"] == ["services.json"]
    again = tidewheel("convert", "lost", "--check", "--json").json
    assert shape(again, set()) == shape(promised()["tidewheel convert"], set())
    assert sorted(files_in(tidewheel.folder / "new")) == sorted(
        path for one in told["converted"] for path in one["files"]
    )


@pytest.mark.usefixtures("old")
def test_check_writes_nothing(tidewheel):
    before = files_in(tidewheel.folder)
    made = tidewheel("convert", "old", "--check")
    assert made.status == 0
    assert "nothing was written" in made.out
    assert files_in(tidewheel.folder) == before


def test_to_convert_again_changes_nothing(tidewheel, old):
    assert tidewheel("convert", "old").status == 0
    before = files_in(old)
    assert tidewheel("convert", "old").status == 0
    assert files_in(old) == before


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_nothing_is_written_where_something_else_is(tidewheel, old, kind):
    there = old / "converted" / "stages" / "b" / "1.0.0" / "args.json.j2"
    there.parent.mkdir(parents=True)
    if kind == "file":
        there.write_text("mine")
    elif kind == "link":
        there.symlink_to(tidewheel.folder / "elsewhere")
    else:
        there.mkdir()
    before = files_in(tidewheel.folder)
    made = tidewheel("convert", "old")
    assert made.status == 2
    assert "old/converted/stages/b/1.0.0/args.json.j2: error: " in made.err
    assert "nothing was written" in made.out
    assert files_in(tidewheel.folder) == before
    assert not (tidewheel.folder / "elsewhere").exists()


def test_a_folder_of_the_result_that_is_a_link_is_not_written_through(tidewheel, old):
    (tidewheel.folder / "elsewhere").mkdir()
    (old / "converted").mkdir()
    (old / "converted" / "stages").symlink_to(tidewheel.folder / "elsewhere")
    made = tidewheel("convert", "old")
    assert made.status == 2
    assert "this is a symbolic link" in made.err
    assert not list((tidewheel.folder / "elsewhere").iterdir())


def test_what_is_left_to_do_is_told_and_the_rest_is_written(tidewheel):
    put(tidewheel.folder, {FILE: definition_1(stage_1("a"))})
    made = tidewheel("convert", FILE)
    assert made.status == 1
    assert "there is no template docker-compose.yaml.j2" in made.err
    assert "it cannot be registered yet" in made.out
    assert list(files_in(tidewheel.folder / "converted")) == [FILE]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "there is no file or folder"),
        ({FILE: "{"}, "this is not valid JSON"),
        ({FILE: '{"x": 1}'}, "neither a workflow definition nor a request"),
        ({FILE: '{"stages": [{{ x }}]}'}, "are not in quotes"),
    ],
)
def test_what_cannot_be_converted_is_refused_with_its_reason(tidewheel, files, said):
    put(tidewheel.folder, files)
    made = tidewheel("convert", FILE)
    assert made.status == 2
    assert said in made.err
    assert not (tidewheel.folder / "converted").exists()


def test_a_name_in_a_file_cannot_control_the_terminal(tidewheel):
    name = "x\x1b[31m"
    put(tidewheel.folder, {FILE: definition_1(stage_1(name), **{name: 1})})
    made = tidewheel("convert", FILE)
    assert "\x1b" not in made.out + made.err


@pytest.mark.usefixtures("old")
def test_two_at_once_write_one_whole_result(tidewheel):
    """Each file is linked into its place: who comes second finds it there, and the same."""
    with tidewheel.started("convert", "old", "--to", "new") as one:
        other = tidewheel("convert", "old", "--to", "new")
        assert other.status == 0, other
        assert one.wait().status == 0
    assert not [path for path in files_in(tidewheel.folder / "new") if "/." in path]


def test_an_instance_that_is_not_certain_is_refused_with_the_command(tidewheel):
    wrong = sbi_1(block_1(resources_required=[{"type": "cpu", "value": 1}]))
    put(tidewheel.folder, {"sbi.json": json.dumps(wrong)})
    told = tidewheel("sbi", "submit", "sbi.json")
    assert told.status == 2
    assert told.err.count("error:") == 1
    assert "tidewheel convert sbi.json" in told.err
    made = tidewheel("convert", "sbi.json")
    assert made.status == 0
    assert "asks for resources, which is not carried over" in made.err


@pytest.mark.usefixtures("old")
def test_a_workflow_that_cannot_be_written_says_why(tidewheel):
    if os.geteuid() == 0:
        (tidewheel.folder / "new").write_text("no folder")
    else:
        (tidewheel.folder / "new").mkdir(mode=0o500)
    made = tidewheel("convert", "old", "--to", "new")
    assert made.status == 2
    assert "Traceback" not in made.err
    assert "new" in made.err


def test_a_compose_file_that_no_engine_takes_is_told_with_its_place(tidewheel):
    wrong = COMPOSE.replace("services:", "services: 7\nother:")
    put(tidewheel.folder, folder_1("a", compose=wrong))
    made = tidewheel("convert", FILE)
    assert made.status == 1
    assert "converted/stages/a/1.0.0/docker_compose.yaml" in made.err


@pytest.mark.parametrize("words", [["config"], ["config", "--task", "a"], ["graph"], ["list"]])
@pytest.mark.usefixtures("old")
def test_every_command_about_definitions_says_that_it_is_version_1(tidewheel, words):
    told = tidewheel(*words, f"old/{FILE}")
    assert told.status == 2
    assert told.out == ""
    assert told.err.count("error:") == 1
    assert "this is a version 1 definition" in told.err


def test_a_folder_without_anything_to_convert_is_said_to_be_one(tidewheel):
    (tidewheel.folder / "other").mkdir()
    (tidewheel.folder / "other" / "process.json").write_text('{"processes": [], "ins": []}')
    made = tidewheel("convert", "other")
    assert made.status == 2
    assert "nothing was written: there is no definition and no request of version 1" in made.out
