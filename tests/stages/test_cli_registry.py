"""`tidewheel register`, `workflows` and `run NAME`: definitions by their names."""

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.support.workflow_folders import FLOW, PYTHON, TEMPLATE, put, sip_files
from tidewheel.core.operator.definition import sealed
from tidewheel.core.operator.registry import NewWorkflow
from tidewheel.wiring.stores import opened_store

CASES = Path(__file__).parents[3] / "shared" / "cases" / "sip" / "workflows_v2.0"
with_cases = pytest.mark.skipif(
    not CASES.is_dir(), reason="there are no cases of others beside this repository"
)


@pytest.fixture
def folder(tidewheel):
    return put(tidewheel.folder / "workflows", sip_files())


def names(tidewheel):
    listed = tidewheel("workflows", "--json").json["workflows"]
    return [f"{one['name']}/{one['version']}" for one in listed]


# ---- registering ----


@pytest.mark.req("R004-1", "R004-2", "R004-5", "S13")
def test_a_newcomer_registers_a_folder_and_runs_a_workflow_of_it(tidewheel, folder):
    (folder / "stages/b/1.0.0/script.sh").chmod(0o777)
    made = tidewheel("register", "workflows")
    assert (made.status, made.err) == (0, "")
    assert made.out == "vis/1.0.0: registered; it can run; each request must give site\n"
    listed = tidewheel("workflows").out.splitlines()
    assert listed[0].split()[:3] == ["WORKFLOW", "VERSION", "KIND"]
    assert listed[1].split()[:5] == ["vis", "1.0.0", "sip", "yes", "site"]
    shutil.rmtree(folder)
    ran = tidewheel("run", "vis", "-p", "site=north")
    assert ran.status == 0, ran.err
    assert "vis/run1 completed" in ran.out and "2 succeeded" in ran.out
    assert tidewheel("log", "vis/run1", "1/a").out == "at north with 4\n"
    kept = tidewheel.state / "runs/vis/run1/stages"
    modes = {path.name: path.stat().st_mode & 0o7777 for path in kept.glob("*/*/*")}
    assert (modes["script.sh"], modes["parameters.yaml"]) == (0o700, 0o600)


@pytest.mark.req("R004-6")
def test_the_same_again_is_unchanged_and_other_content_is_refused(tidewheel, folder):
    tidewheel("register", "workflows")
    again = tidewheel("register", "workflows/vis-1.0.0.yaml")
    assert again.status == 0
    assert (
        again.out
        == "vis/1.0.0: registered already, unchanged; it can run; each request must give site\n"
    )
    put(folder, {"stages/b/1.0.0/script.sh": "echo other\n"})
    refused = tidewheel("register", "workflows")
    assert (refused.status, refused.out) == (2, "")
    assert "registered already with other content: vis/1.0.0" in refused.err
    assert "tidewheel workflows remove vis/1.0.0" in refused.err


@pytest.mark.req("R004-7", "R004-8")
def test_what_is_wrong_is_told_with_its_place_and_nothing_is_registered(tidewheel, folder):
    put(folder, {"a-1.0.0.yaml": sip_files()["vis-1.0.0.yaml"]})
    (folder / "stages/b/1.0.0/script.sh").rename(folder / "stages/b/1.0.0/notes.txt")
    refused = tidewheel("register", "workflows")
    assert (refused.status, refused.out) == (2, "")
    assert "stages/b/1.0.0: error: stage b: there is no docker_compose.yaml" in refused.err
    assert refused.err.startswith("workflows/")  # a path that opens from here
    assert refused.err.splitlines()[-1] == "nothing was registered"
    assert names(tidewheel) == []
    told = tidewheel("register", "workflows", "--json")
    assert told.status == 2 and '"no-compose-file"' in told.err
    gone = tidewheel("register", "nowhere")
    assert gone.status == 2 and "there is no file or folder nowhere" in gone.err


def test_links_and_devices_of_a_folder_are_refused(tidewheel, folder):
    (folder / "stages/b/1.0.0/link").symlink_to("/etc/passwd")
    refused = tidewheel("register", "workflows")
    assert refused.status == 2 and "link is a link" in refused.err
    assert names(tidewheel) == []


@pytest.mark.req("R004-9", "R004-10")
def test_versions_are_shown_checked_rendered_and_removed(tidewheel, folder):
    put(folder, {"vis-1.10.0.yaml": sip_files()["vis-1.0.0.yaml"]})
    tidewheel("register", "workflows")
    assert names(tidewheel) == ["vis/1.10.0", "vis/1.0.0"]
    shown = tidewheel("workflows", "show", "vis").out
    assert shown.startswith("vis/1.10.0  sip; it can run; each request must give site\n")
    assert "other versions: 1.0.0" in shown
    assert "(must be given)" in shown and "stages/b/1.0.0/script.sh" in shown
    good = tidewheel("workflows", "check", "vis/1.0.0", "-p", "site=x")
    assert (good.status, good.out) == (0, "vis/1.0.0: it can run with these parameters\n")
    unused = tidewheel("workflows", "check", "vis/1.0.0", "-p", "site=x", "-p", "zzz=1")
    assert unused.status == 2 and "zzz" in unused.out  # `run` refuses it, too
    bad = tidewheel("workflows", "check", "vis", "-p", "nodes=2")
    assert bad.status == 2
    assert "stage a needs the parameter 'site'" in bad.out
    assert "vis/1.10.0: it cannot run with these parameters" in bad.out
    rendered = tidewheel("workflows", "render", "vis", "-p", "site=x y", "--stage", "a")
    assert rendered.out == "# stage a\necho 'at x y with 4'\n"
    for how in ((), ("--json",)):
        other = tidewheel("workflows", "render", "vis", "-p", "site=x", "--stage", "c", *how)
        assert other.status == 2 and "has no stage 'c'" in other.err
    refused = tidewheel("workflows", "render", "vis")
    assert refused.status == 2 and "stage a needs the parameter 'site'" in refused.err
    which = tidewheel("workflows", "remove", "vis")
    assert which.status == 2 and "say which: 1.10.0, 1.0.0" in which.err.lower()
    assert tidewheel("workflows", "remove", "vis/1.10.0").out == "removed vis/1.10.0\n"
    assert names(tidewheel) == ["vis/1.0.0"]


@pytest.mark.usefixtures("folder")
def test_an_unknown_workflow_is_told_with_the_nearest_name(tidewheel):
    nothing = tidewheel("workflows", "show", "vis")
    assert nothing.status == 2 and "tidewheel register PATH" in nothing.err
    assert "tidewheel register PATH" in tidewheel("workflows").err
    tidewheel("register", "workflows")
    near = tidewheel("workflows", "show", "viz")
    assert near.status == 2 and "did you mean 'vis'?" in near.err.lower()
    version = tidewheel("run", "vis/2.0")
    assert version.status == 2 and "registered versions: 1.0.0" in version.err
    unknown = tidewheel("run", "nothing-like-it")
    assert unknown.status == 2
    assert "neither a folder, nor a run, nor a registered workflow" in unknown.err
    assert tidewheel("workflows", "show").status == 2


# ---- real files of others ----


@with_cases
@pytest.mark.req("R004-3", "R004-4")
def test_a_real_definition_is_registered_and_told_why_it_cannot_run(tidewheel):
    made = tidewheel("register", str(CASES / "ingest-test-01.yaml.j2"))
    assert made.status == 0
    assert made.out == "ingest-test-01/1.0.0: registered; it cannot run as it is\n"
    assert "move it out of deploy" in made.err
    assert "stages/ingest_test/1.0.0/args.json.j2:5: error:" in made.err
    ran = tidewheel("run", "ingest-test-01")
    assert ran.status == 2 and "these parameters are empty: ip_addresses" in ran.err
    everything = tidewheel("register", str(CASES))
    assert everything.status == 2 and everything.err.count("error:") == 4
    assert names(tidewheel) == ["ingest-test-01/1.0.0"]


# ---- other kinds ----


@pytest.mark.req("R004-66")
def test_a_flow_cylc_and_python_run_by_name_and_version(tidewheel):
    tide = put(tidewheel.folder / "tide", {"flow.cylc": FLOW})
    programs = put(tidewheel.folder / "programs", {"cycle.py": PYTHON})
    made = tidewheel("register", "tide", "programs/cycle.py")
    assert made.out == "tide/2.1: registered; it can run\ncycle/0.0.0: registered; it can run\n"
    shutil.rmtree(tide)
    shutil.rmtree(programs)
    for name in ("tide/2.1", "cycle"):
        ran = tidewheel("run", name)
        assert ran.status == 0, ran.err
        assert "completed" in ran.out


def test_the_template_of_a_flow_cylc_takes_variables(tidewheel):
    folder = put(tidewheel.folder / "tide", {"flow.cylc": TEMPLATE})
    made = tidewheel("register", "tide", "--version", "7")
    assert (made.status, made.out) == (0, "tide/7: registered; it cannot run as it is\n")
    assert "'NAMES' is undefined" in made.err
    shutil.rmtree(folder)
    missing = tidewheel("run", "tide")
    assert missing.status == 2 and "'NAMES' is undefined" in missing.err
    ran = tidewheel("run", "tide", "-s", "NAMES=['x', 'y']")
    assert ran.status == 0 and "1/y succeeded" in ran.out
    again = tidewheel("run", "tide", "-p", 'NAMES=["z"]')
    assert again.status == 0 and "tide/run2 completed" in again.out


# ---- which of several is meant ----


def test_a_path_wins_over_a_name_and_a_run_over_a_workflow(tidewheel):
    put(tidewheel.folder / "tide", {"flow.cylc": FLOW})
    tidewheel("register", "tide")
    ran = tidewheel("run", "tide")
    assert ran.status == 0
    assert "not the registered workflow" in ran.err
    shutil.rmtree(tidewheel.folder / "tide")
    by_name = tidewheel("run", "tide")
    assert by_name.status == 0 and "tide/run2" in by_name.out
    carried_on = tidewheel("run", "tide/run1")
    assert carried_on.out.startswith("tide/run1 was already complete")


def test_the_same_parameters_carry_a_stopped_run_on_and_others_begin_another(tidewheel):
    stop = "tidewheel stop --now $TIDEWHEEL_WORKFLOW_ID\n"
    put(tidewheel.folder / "workflows", sip_files(script_sh=stop))
    tidewheel("register", "workflows")
    first = tidewheel("run", "vis", "-p", "site=north", "-p", "nodes=2")
    assert "vis/run1" in first.out, first.out + first.err
    same = tidewheel("run", "vis", "-p", "nodes=2", "-p", "site=north")
    assert "vis/run1 resumes" in same.out, same.out + same.err
    refused = tidewheel("run", "vis", "-p", "site=south", "-p", "noeds=3")
    assert refused.status == 2
    assert "error: the parameter 'noeds' changes nothing" in refused.err
    assert "did you mean 'nodes'?" in refused.err
    other = tidewheel("run", "vis", "-p", "site=south")
    assert "vis/run2 starts" in other.out, other.out + other.err


def test_a_run_that_was_stopped_is_carried_on_and_new_begins_another(tidewheel):
    stopping = FLOW.replace("script = true", "script = tidewheel stop --now $CYLC_WORKFLOW_ID")
    put(tidewheel.folder / "tide", {"flow.cylc": stopping})
    tidewheel("register", "tide")
    shutil.rmtree(tidewheel.folder / "tide")
    first = tidewheel("run", "tide")
    assert "tide/run1" in first.out
    second = tidewheel("run", "tide")
    assert "tide/run1 resumes" in second.out, second.out + second.err
    third = tidewheel("run", "tide", "--new")
    assert "tide/run2 starts" in third.out, third.out + third.err
    unknown = tidewheel("run", "nobody", "--new")
    assert unknown.status == 2 and "registered workflow" in unknown.err


# ---- versions that begin with a letter, and whose sight a run has ----


def test_l2_a_version_that_begins_with_a_letter_is_meant_where_no_workflow_has_the_name(
    tidewheel,
):
    put(tidewheel.folder / "tide", {"flow.cylc": FLOW})
    for version in ("beta", "2.0"):
        made = tidewheel("register", "tide", "--name", "team/tide", "--version", version)
        assert made.status == 0, made.err
    assert tidewheel("workflows", "show", "team/tide/beta").out.startswith("team/tide/beta ")
    assert tidewheel("workflows", "show", "team/tide").out.startswith("team/tide/2.0 ")
    ran = tidewheel("run", "team/tide/beta")
    assert ran.status == 0 and "team/tide/run1 completed" in ran.out, ran.err
    assert tidewheel("workflows", "remove", "team/tide/beta").status == 0
    assert names(tidewheel) == ["team/tide/2.0"]
    assert tidewheel("workflows", "show", "team/tide/beta").status != 0


def test_h4_code_of_a_team_sees_no_more_when_somebody_at_the_store_runs_it(tidewheel):
    put(tidewheel.folder / "tide", {"flow.cylc": FLOW})
    assert tidewheel("register", "tide", "--name", "team/tide").status == 0

    async def registered_by_team(store):
        [owned] = await store.workflows("team/tide")
        kept = sealed(await store.definition(owned.definition))
        new = {"name": "team/tide", "version": "9", "definition": kept, "runnable": True}
        await store.register([NewWorkflow(**new, sees=("team",))])

    async def sight(store):
        return {run.name: run.sees for run in await store.runs()}

    def at_the_store(work):
        async def go():
            async with opened_store(tidewheel.store) as store:
                return await work(store)

        return asyncio.run(go())

    at_the_store(registered_by_team)
    assert tidewheel("run", "team/tide/9").status == 0
    assert tidewheel("run", "team/tide/2.1").status == 0
    assert at_the_store(sight) == {"team/tide/run1": ("team",), "team/tide/run2": None}
