"""Files of a run's definition on a host where its scheduler does not run."""

import asyncio

import pytest

from tests.support.run_jobs import node, run_facts, submission
from tidewheel.core.operator.definition import StoredDefinition, StoredFile
from tidewheel.errors import NotFound, Refused, RunnerUnable, StoreUnreachable
from tidewheel.scheduler.run_files import RunFiles
from tidewheel.services.definition_sync import Supplies, held_definition, wanted_definition
from tidewheel.services.paths import STORE


def definition(digest, **files):
    kept = tuple(
        StoredFile(name.replace("_", "/"), content.encode(), name.startswith("bin"))
        for name, content in files.items()
    )
    return StoredDefinition(
        digest=digest, workflow="tide", kind="flow.cylc", text="", variables="[]", files=kept
    )


class Store:
    """What the run has now, and how often it was asked for."""

    def __init__(self, now):
        self.now, self.asked, self.error = now, 0, None

    async def __call__(self, task):
        assert task.run == 7
        self.asked += 1
        if self.error is not None:
            raise self.error
        await asyncio.sleep(0)
        return self.now


async def known_store():
    return "the store"


def job(digest, name="foo"):
    return submission(node(name), run=run_facts(definition=digest))


def test_a_job_says_which_definition_it_was_written_from():
    assert wanted_definition(job("abc1")) == "abc1"
    assert wanted_definition(job("abc1-local")) == "abc1-local"
    assert wanted_definition(job("")) == ""
    script = "TIDEWHEEL_WORKFLOW_DEFINITION=beef"
    other = submission(node(main=script), run=run_facts(definition="abc1"))
    assert wanted_definition(other) == "abc1"


async def supplied(supplies, directory, *digests):
    for digest in digests:
        await supplies(job(digest), directory)


def test_files_are_there_before_the_first_job_and_are_fetched_once(tmp_path):
    store = Store(definition("d1", bin_tool="#!/bin/sh", lib_x="1"))
    supplies, run = Supplies(store, known_store), tmp_path / "runs" / "tide"

    async def many():
        await asyncio.gather(*(supplies(job("d1", f"t{n}"), run) for n in range(20)))

    asyncio.run(many())
    assert (run / "bin/tool").read_text() == "#!/bin/sh"
    assert (run / "bin/tool").stat().st_mode & 0o777 == 0o700
    assert store.asked == 1 and held_definition(run) == "d1"
    asyncio.run(Supplies(store, known_store)(job("d1"), run))  # another worker of this host
    assert store.asked == 1


def test_on_the_schedulers_own_host_nothing_is_fetched(tmp_path):
    store = Store(definition("d1", bin_tool="x"))
    RunFiles(tmp_path).prepare(store.now)
    asyncio.run(Supplies(store, known_store)(job("d1"), tmp_path))
    assert store.asked == 0


def test_the_files_of_a_reload_arrive_and_old_ones_never_come_back(tmp_path):
    store = Store(definition("d1", bin_tool="old", lib_x="1"))
    supplies = Supplies(store, known_store)
    asyncio.run(supplied(supplies, tmp_path, "d1"))
    store.now = definition("d2", bin_tool="new", lib_x="1")
    asyncio.run(supplied(supplies, tmp_path, "d2"))
    assert (tmp_path / "bin/tool").read_text() == "new"
    asyncio.run(supplied(supplies, tmp_path, "d1", "d2", "d1"))  # it waited in the queue
    assert (tmp_path / "bin/tool").read_text() == "new"
    assert held_definition(tmp_path) == "d2"


def test_files_that_a_reload_no_longer_has_are_removed_unless_a_job_has_changed_them(tmp_path):
    """A job that still called such a program would succeed with it."""
    store = Store(definition("d1", bin_tool="old", bin_mine="1", lib_x="1"))
    supplies = Supplies(store, known_store)
    asyncio.run(supplied(supplies, tmp_path, "d1"))
    (tmp_path / "bin/mine").write_text("2")
    (tmp_path / "bin/made").write_text("by a job")
    store.now = definition("d2", lib_x="1")
    asyncio.run(supplied(supplies, tmp_path, "d2"))
    assert {one.name for one in (tmp_path / "bin").iterdir()} == {"mine", "made"}
    assert (tmp_path / "lib/x").read_text() == "1"
    RunFiles(tmp_path).prepare(definition("d3", bin_mine="3"), anew=True)  # on its own host
    assert not (tmp_path / "lib/x").exists()


def test_what_a_job_has_changed_stays_until_the_next_reload(tmp_path):
    store = Store(definition("d1", lib_x="1"))
    asyncio.run(supplied(Supplies(store, known_store), tmp_path, "d1"))
    (tmp_path / "lib/x").write_text("mine")
    asyncio.run(supplied(Supplies(store, known_store), tmp_path, "d1"))
    assert (tmp_path / "lib/x").read_text() == "mine"


@pytest.mark.parametrize(
    ("error", "raised"),
    [(StoreUnreachable("away"), RunnerUnable), (NotFound("run", "tide"), Refused)],
)
def test_files_that_cannot_be_had_are_trouble_with_a_reason(tmp_path, error, raised):
    store = Store(definition("d1", lib_x="1"))
    store.error = error
    supplies = Supplies(store, known_store)
    with pytest.raises(
        raised, match=r"the files of flows/tide/run1 (cannot be fetched|are not available)"
    ):
        asyncio.run(supplied(supplies, tmp_path, "d1"))
    store.error = None
    asyncio.run(supplied(supplies, tmp_path, "d1"))
    assert (tmp_path / "lib/x").read_text() == "1"


def test_a_folder_that_cannot_be_written_is_trouble_of_the_host(tmp_path):
    (tmp_path / "log").write_text("no folder")
    store = Store(definition("d1", lib_x="1"))
    with pytest.raises(RunnerUnable, match="cannot be written here"):
        asyncio.run(supplied(Supplies(store, known_store), tmp_path, "d1"))


def test_a_file_outside_of_the_folder_is_refused(tmp_path):
    """S13."""
    evil = StoredFile("../evil", b"x", False)
    store = Store(
        StoredDefinition(
            digest="d1", workflow="t", kind="flow.cylc", text="", variables="[]", files=(evil,)
        )
    )
    with pytest.raises(Refused, match="outside of its folder"):
        asyncio.run(supplied(Supplies(store, known_store), tmp_path / "run", "d1"))
    assert not (tmp_path / "evil").exists()


def test_a_folder_that_a_worker_makes_says_which_store_knows_its_run(tmp_path):
    """Several stores may use one home; verify --files takes no folder of another one."""
    run = tmp_path / "run"
    asyncio.run(supplied(Supplies(Store(definition("d1")), known_store), run, "d1"))
    assert (run / STORE).read_text() == "the store"
    (run / STORE).unlink()  # as an earlier version left it
    asyncio.run(supplied(Supplies(Store(definition("d1")), known_store), run, "d1"))
    assert (run / STORE).read_text() == "the store"


def test_files_are_there_for_jobs_of_their_definition_and_of_no_other_whose_name_begins_so(
    tmp_path,
):
    supplies = Supplies(Store(definition("d1")), known_store)
    assert not supplies.is_there(job("d1"), tmp_path)
    assert supplies.is_there(job(""), tmp_path)
    asyncio.run(supplied(supplies, tmp_path, "d1"))
    there = {digest: supplies.is_there(job(digest), tmp_path) for digest in ("d1", "", "d2")}
    assert there == {"d1": True, "": True, "d2": False}
    assert not supplies.is_there(job("d1-local"), tmp_path)
    assert not supplies.is_there(job("d12"), tmp_path)
    otherwise = submission(node("a"), run=run_facts(definition="d1", name="another/name"))
    assert supplies.is_there(otherwise, tmp_path)  # its script begins with other words
