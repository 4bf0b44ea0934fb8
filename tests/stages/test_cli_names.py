"""`graph`, `list`, `rehearse`, `validate`, `config` and `view` of a registered workflow."""

import asyncio
import shutil

import pytest

from tests.support.cli_fixture import EVERYWHERE
from tests.support.workflow_folders import FLOW, PYTHON, TEMPLATE, put, sip_files
from tidewheel.core.operator.definition import StoredDefinition, sealed
from tidewheel.core.operator.registry import NewWorkflow
from tidewheel.wiring.stores import opened_store

COMMANDS = ("validate", "list", "graph", "config", "view", "rehearse")


def answers(tidewheel, word, *more):
    """What each command says of a definition, and with which exit status."""
    said = {one: tidewheel(one, word, *more) for one in COMMANDS}
    # How long the rehearsal took is another thing.
    return {
        one: (
            answer.status,
            answer.out.partition(" in ")[0] if one == "rehearse" else answer.out,
        )
        for one, answer in said.items()
    }


@pytest.fixture
def registered(tidewheel):
    """A definition of stages, a flow.cylc and one in Python, whose folders are gone again."""
    folder = tidewheel.folder / "there"
    put(folder, sip_files())
    put(folder / "tide", {"flow.cylc": FLOW})
    put(folder, {"cycle.py": PYTHON})
    words = ["there/vis-1.0.0.yaml", "there/tide", "there/cycle.py"]
    before = {
        "vis": answers(tidewheel, words[0], "--parameter", "site=north"),
        "tide": answers(tidewheel, words[1]),
    }
    for word in words:
        made = tidewheel("register", word)
        assert made.status == 0, made.err
    shutil.rmtree(folder)
    return before


@EVERYWHERE
def test_a_name_says_what_its_files_said(tidewheel, registered):
    by_name = answers(tidewheel, "vis", "--parameter", "site=north")
    assert by_name == registered["vis"]
    assert {status for status, _ in by_name.values()} == {0}
    assert answers(tidewheel, "vis/1.0.0", "--parameter", "site=north") == by_name
    assert answers(tidewheel, "tide") == registered["tide"]
    assert tidewheel("list", "cycle").out == "a\nb\n"
    assert tidewheel("graph", "cycle/0.0.0", "--reference").status == 0


@EVERYWHERE
@pytest.mark.usefixtures("registered")
def test_options_of_reading_count_for_a_name(tidewheel):
    missing = tidewheel("validate", "vis", "-p", "nodes=2")
    assert missing.status == 2 and "needs the parameter 'site'" in missing.out
    given = tidewheel("config", "vis", "-p", "site=east", "--json").json["config"]
    assert "east" in str(given["stages"]["a"])
    named = tidewheel("graph", "tide", "--json").json
    assert named["workflow"] == "tide"


def test_a_template_is_rendered_with_the_variables_that_are_given(tidewheel):
    put(tidewheel.folder / "there/names", {"flow.cylc": TEMPLATE})
    assert tidewheel("register", "there/names").status == 0
    assert tidewheel("list", "names", "-z", "NAMES=x,y").out == "x\ny\n"
    assert tidewheel("list", "names/3.0", "-z", "NAMES=z").out == "z\n"


def test_a_rehearsal_of_a_name_learns_from_runs_of_that_name(tidewheel):
    put(tidewheel.folder / "there/tide", {"flow.cylc": FLOW})
    tidewheel("register", "there/tide")
    assert tidewheel("run", "tide").status == 0
    learnt = tidewheel("rehearse", "tide")
    assert "for 2 tasks the run time of earlier runs is assumed" in learnt.err


@EVERYWHERE
@pytest.mark.usefixtures("registered")
def test_a_word_that_names_nothing_is_told_with_the_nearest_name(tidewheel):
    for command in COMMANDS:
        typo = tidewheel(command, "tidy")
        assert typo.status == 2
        assert "there is no file or folder tidy, and no registered workflow" in typo.err
        assert "did you mean 'tide'?" in typo.err
        version = tidewheel(command, "vis/2.0")
        assert version.status == 2 and "registered versions: 1.0.0" in version.err
    told = tidewheel("validate", "tidy", "--json")
    assert told.status == 2 and '"no-such-file"' in told.err
    ran = tidewheel("run", "tidy")
    assert ran.status == 2 and "did you mean 'tide'?" in ran.err.lower()


def test_without_a_store_nothing_is_made_by_looking(tidewheel):
    refused = tidewheel("graph", "tide")
    assert refused.status == 2 and "register it first: tidewheel register PATH" in refused.err
    assert not list(tidewheel.state.glob("*.db"))
    gone = tidewheel("graph", "./tide.yaml")
    assert gone.status == 2 and "there is no file" in gone.err


@pytest.mark.usefixtures("registered")
def test_a_folder_of_that_name_goes_first_and_the_name_is_told(tidewheel):
    put(tidewheel.folder / "tide", {"flow.cylc": FLOW.replace("a => b", "here")})
    assert tidewheel("list", "tide").out.splitlines()[-1] == "here"
    put(tidewheel.folder / "vis", {"stages/x/1.0.0/script.sh": "true\n"})
    put(tidewheel.folder / "vis", {"other-1.0.0.yaml": sip_files()["vis-1.0.0.yaml"]})
    put(tidewheel.folder / "vis", {"night.yaml": "id: SBI-1\nprocessing_blocks: []\n"})
    put(tidewheel.folder / "vis", {"one-line.json": '{"id": "x", "stages": []}'})
    refused = tidewheel("graph", "vis")
    assert refused.status == 2
    assert "name the definition: vis/one-line.json, vis/other-1.0.0.yaml\n" in refused.err
    assert "not the registered workflow vis/1.0.0" in refused.err


def test_no_path_of_a_kept_definition_leads_out_of_its_folder(tidewheel, tmp_path):
    """A store may be of somebody else, and so may be what it says."""
    outside = tmp_path / "outside.yaml"
    outside.write_text(sip_files()["vis-1.0.0.yaml"])

    async def register():
        kept = sealed(StoredDefinition(digest="", workflow="x", kind="sip", text=str(outside)))
        async with opened_store(tidewheel.store) as store:
            await store.register(
                [NewWorkflow(name="x", version="1", definition=kept, runnable=True)]
            )

    asyncio.run(register())
    refused = tidewheel("list", "x/1")
    assert refused.status == 2 and "is not among its files" in refused.err
