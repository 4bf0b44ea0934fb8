"""The registry near and far: the same answers on a store and on a server."""

import json
import re
from pathlib import Path

import pytest

from tests.support import visitor as visitors
from tests.support.http_server import running_server
from tests.support.workflow_folders import FLOW, PYTHON, TEMPLATE, put, sip_files
from tidewheel.core.graph.findings import InvalidDefinition, Severity
from tidewheel.core.operator.definition import RunOptions
from tidewheel.errors import AlreadyRegistered, Refused, UnknownWorkflow

CASES = Path(__file__).parents[3] / "shared" / "cases" / "sip" / "workflows_v2.0"
with_cases = pytest.mark.skipif(
    not CASES.is_dir(), reason="there are no cases of others beside this repository"
)


class Visitor(visitors.Visitor):
    """Somebody who comes to the registry near or far."""

    part = "workflows"

    def names(self):
        return [f"{one['name']}/{one['version']}" for one in self.list()["workflows"]]


@pytest.fixture
def store(tmp_path):
    return f"sqlite:///{tmp_path}/t.db"


@pytest.fixture(params=["near", "far"])
def where(request):
    return request.param


@pytest.fixture
def registry(where, store, tmp_path):
    if where == "near":
        yield Visitor(store)
        return
    with running_server(store, home=tmp_path / "home") as server:
        yield Visitor(f"http://{server.address}", server.caller("submit").token)


@pytest.fixture
def folder(tmp_path):
    return put(tmp_path / "workflows", sip_files())


def codes(refused):
    """Of the errors."""
    return [one.code for one in refused.value.findings if one.severity is Severity.ERROR]


# ---- registering ----


@pytest.mark.req("R004-1", "R004-2", "R004-4", "R004-5")
def test_a_folder_is_registered_and_not_needed_any_more(registry, folder):
    put(folder, {"other-2.0.yaml": sip_files()["vis-1.0.0.yaml"]})
    told = registry.register(folder)["workflows"]
    assert [(one["name"], one["version"]) for one in told] == [
        ("other", "2.0"),
        ("vis", "1.0.0"),
    ]
    assert all(one["is_new"] and one["runnable"] for one in told)
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    shown = registry.show("vis")
    assert [one["path"] for one in shown["files"]] == [
        "stages/a/1.0.0/command.yaml.j2",
        "stages/a/1.0.0/parameters.yaml",
        "stages/b/1.0.0/script.sh",
        "vis-1.0.0.yaml",
    ]
    run = registry.run("vis", {"site": "north"})
    assert (run.name, run.workflow, run.folder) == (
        "vis/run1",
        "vis",
        "vis/1.0.0 of the registry",
    )
    assert json.loads(run.options.parameters) == {"site": "north"}


@pytest.mark.req("R004-6")
def test_the_same_again_changes_nothing_and_other_content_is_refused(registry, folder):
    registry.register(folder)
    before = registry.show("vis")
    (again,) = registry.register(folder)["workflows"]
    assert not again["is_new"]
    put(folder, {"stages/b/1.0.0/script.sh": "echo other\n"})
    with pytest.raises(AlreadyRegistered, match=r"vis/1\.0\.0.*remove"):
        registry.register(folder)
    assert registry.show("vis") == before


@pytest.mark.req("R004-7", "R004-8")
def test_one_bad_stage_keeps_all_of_a_call_out(registry, folder):
    bad = (
        sip_files()["vis-1.0.0.yaml"].replace("id: a", "id: c").replace("value: a", "value: c")
    )
    put(folder, {"bad-1.0.0.yaml": bad})
    with pytest.raises(InvalidDefinition) as refused:
        registry.register(folder)
    assert "no-stage-folder" in codes(refused)
    assert registry.names() == []


@pytest.mark.req("R004-8", "R004-35")
@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("stages", "stges", "no-stages-folder"),
        ("stages/a", "stages/alpha", "no-stage-folder"),
        ("stages/a/1.0.0", "stages/a/1.0.1", "no-stage-folder"),
        ("vis-1.0.0.yaml", "vis-1.0.0.txt", "definition-file-kind"),
        ("stages/b/1.0.0/script.sh", "stages/b/1.0.0/readme", "no-compose-file"),
        (
            "stages/a/1.0.0/parameters.yaml",
            "stages/a/1.0.0/parameters.txt",
            "parameters-file-kind",
        ),
        ("stages/a/1.0.0/parameters.yaml", "stages/a/1.0.0/args.txt", "args-file-kind"),
    ],
)
def test_each_way_to_name_a_file_wrongly_has_a_message_of_its_own(
    registry, folder, before, after, code
):
    (folder / before).rename(folder / after)
    (file,) = folder.glob("vis*")
    with pytest.raises(InvalidDefinition) as refused:
        registry.register(file)
    assert set(codes(refused)) == {code}
    assert registry.names() == []


@pytest.mark.req("R004-9", "R004-10")
def test_versions_stand_side_by_side_until_one_is_removed(registry, folder):
    for version in ("1.9.0", "1.10.0"):
        put(folder, {f"vis-{version}.yaml": sip_files()["vis-1.0.0.yaml"]})
    registry.register(folder)
    assert registry.names() == ["vis/1.10.0", "vis/1.9.0", "vis/1.0.0"]
    assert registry.show("vis")["version"] == "1.10.0"
    assert registry.show("vis/1.9.0")["versions"] == ["1.10.0", "1.9.0", "1.0.0"]
    with pytest.raises(Refused, match=r"several versions.*1\.10\.0, 1\.9\.0, 1\.0\.0"):
        registry.remove("vis")
    assert registry.remove("vis/1.10.0")["version"] == "1.10.0"
    assert registry.show("vis")["version"] == "1.9.0"
    registry.remove("vis/1.9.0")
    registry.remove("vis")
    assert registry.names() == []


@pytest.mark.req("R004-10")
def test_a_run_is_not_harmed_by_the_removal_of_its_workflow(registry, folder):
    registry.register(folder)
    run = registry.run("vis", {"site": "north"})
    registry.remove("vis")
    kept = registry.ask(lambda client: client.runs.definition(run.name))
    assert (kept.kind, kept.text, len(kept.files)) == ("sip", "vis-1.0.0.yaml", 4)
    assert registry.ask(lambda client: client.runs.find(run.name)).definition == kept.digest


# ---- whose code may run ----

STRIKES = """\
#!jinja2
[meta]
    version = 3.0
[scheduling]
    [[graph]]
        R1 = {% if environ %}struck{% endif %}a => b
[runtime]
    [[a, strucka, b]]
        script = true
"""


@pytest.fixture
def visitors_of_one_store(store, tmp_path):
    """Whoever has the store, and whoever comes to its server."""
    with running_server(store, home=tmp_path / "home") as server:
        yield Visitor(store), Visitor(f"http://{server.address}", server.caller("submit").token)


def test_what_came_over_the_network_runs_no_code_for_anybody(visitors_of_one_store, tmp_path):
    near, far = visitors_of_one_store
    folder = put(tmp_path / "tide", {"flow.cylc": STRIKES})
    far.register(folder)
    for visitor in (near, far):
        assert "R1 = a => b" in visitor.render("tide")["text"]
        run = visitor.run("tide")
        kept = visitor.ask(lambda client, name=run.name: client.runs.definition(name))
        assert "R1 = a => b" in kept.text
        assert not kept.is_trusted


def test_what_its_owner_registered_runs_code_for_its_owner_alone(
    visitors_of_one_store, tmp_path
):
    near, far = visitors_of_one_store
    near.register(put(tmp_path / "tide", {"flow.cylc": STRIKES}))
    for visitor, graph, trusted in ((far, "= a => b", False), (near, "= strucka => b", True)):
        assert graph in visitor.render("tide")["text"]
        run = visitor.run("tide")
        kept = visitor.ask(lambda client, name=run.name: client.runs.definition(name))
        assert (graph in kept.text, kept.is_trusted) == (True, trusted)


def test_whoever_registers_a_folder_again_stands_for_it(visitors_of_one_store, tmp_path):
    near, far = visitors_of_one_store
    folder = put(tmp_path / "tide", {"flow.cylc": STRIKES})
    assert far.register(folder)["workflows"][0]["is_new"]
    assert not near.register(folder)["workflows"][0]["is_new"]
    assert "= strucka => b" in near.render("tide")["text"]
    assert not far.register(folder)["workflows"][0]["is_new"]
    assert "= strucka => b" in near.render("tide")["text"]
    assert "= a => b" in far.render("tide")["text"]


def test_warnings_refuse_only_whoever_is_strict(registry, folder):
    changed = sip_files()["vis-1.0.0.yaml"].replace("type: setup", "type: Setup")
    put(folder, {"vis-1.0.0.yaml": changed})
    with pytest.raises(InvalidDefinition) as refused:
        registry.register(folder, strict=True)
    assert codes(refused) == ["capital-letters"]
    (told,) = registry.register(folder)["workflows"]
    assert [one["code"] for one in told["findings"]] == [
        "capital-letters",
        "required-parameter",
    ]


def test_two_files_that_are_one_workflow_are_refused(registry, folder):
    text = sip_files()["vis-1.0.0.yaml"]
    put(folder, {"vis_1.0.0.yaml": f"# other\n{text}"})
    with pytest.raises(InvalidDefinition) as refused:
        registry.register(folder)
    assert codes(refused) == ["two-definitions"]
    assert registry.names() == []


def test_two_folders_with_one_workflow_are_refused(registry, folder, tmp_path):
    other = put(tmp_path / "other", sip_files(script_sh="echo other\n"))
    both = f"{folder}/vis-1.0.0.yaml and {other}/vis-1.0.0.yaml both define vis/1.0.0"
    with pytest.raises(InvalidDefinition, match=re.escape(both)) as refused:
        registry.register(folder, other)
    assert codes(refused) == ["two-definitions"]
    assert registry.names() == []


@pytest.mark.req("R004-7", "R004-8", "R004-35")
def test_findings_about_several_folders_name_the_folder_of_each(registry, folder, tmp_path):
    files = {path.replace("vis", "other"): one for path, one in sip_files().items()}
    other = put(tmp_path / "other", files)
    (other / "stages").rename(other / "Stages")
    with pytest.raises(InvalidDefinition) as refused:
        registry.register(folder, other)
    (missing,) = [one for one in refused.value.findings if one.severity is Severity.ERROR]
    assert missing.position.file == f"{other}/other-1.0.0.yaml"
    assert missing.hint == "Stages is there: rename it to stages"
    (other / "Stages").rename(other / "stages")
    told = registry.register(folder, other)["workflows"]
    assert [one["findings"][0]["file"] for one in told] == [
        f"{folder}/vis-1.0.0.yaml",
        f"{other}/other-1.0.0.yaml",
    ]
    kept = registry.show("other")["findings"]
    assert {one["file"] for one in kept} == {"other-1.0.0.yaml"}
    (alone,) = registry.register(other)["workflows"]
    assert alone["findings"][0]["file"] == "other-1.0.0.yaml"


@pytest.mark.req("R004-1")
def test_a_scheduling_block_instance_beside_a_definition_is_left_alone(registry, folder):
    instance = '{"id": "SBI-20190117-test-001", "version": "2.0", "processing_blocks": []}\n'
    put(folder, {"example_sbi.json": instance})
    registry.register(folder)
    assert registry.names() == ["vis/1.0.0"]
    with pytest.raises(InvalidDefinition) as refused:
        registry.register(folder / "example_sbi.json")
    assert codes(refused) == ["no-definition"]


def test_there_must_be_something_to_register(registry, tmp_path):
    (tmp_path / "empty").mkdir()
    for path, code in (("empty", "no-definitions"), ("nowhere", "no-such-file")):
        with pytest.raises(InvalidDefinition) as refused:
            registry.register(tmp_path / path)
        assert codes(refused) == [code]


# ---- parameters and runs ----


@pytest.mark.req("R004-41", "R004-42", "R004-43", "R004-45", "R004-46")
def test_parameters_are_told_and_a_run_without_a_required_one_is_refused(registry, folder):
    registry.register(folder)
    asked = {one["name"]: one for one in registry.show("vis")["parameters"]}
    assert (asked["nodes"]["default"], asked["nodes"]["required"]) == (4, False)
    assert ("default" in asked["site"], asked["site"]["required"]) == (False, True)
    with pytest.raises(
        InvalidDefinition, match="stage a needs the parameter 'site'"
    ) as refused:
        registry.run("vis")
    assert codes(refused) == ["missing-parameter"]
    assert registry.check("vis")["runnable"]
    assert not registry.check("vis", {"nodes": 1})["runnable"]
    assert registry.check("vis", {"site": "x"})["runnable"]
    rendered = registry.render("vis", {"site": "north", "nodes": 7})
    assert rendered["stages"]["a"]["command"] == ["echo", "at north with 7"]
    rendered = registry.render("vis", {"site": "north"})
    assert rendered["stages"]["a"]["command"] == ["echo", "at north with 4"]
    with pytest.raises(InvalidDefinition):
        registry.render("vis", {})
    assert registry.ask(lambda client: client.runs.list())["runs"] == []


@pytest.mark.req("R004-44")
def test_an_output_of_an_earlier_stage_satisfies_a_parameter(registry, folder):
    put(
        folder,
        {
            "stages/a/1.0.0/parameters.yaml": "site: north\nnodes: 4\n",
            "stages/a/1.0.0/outputs.yaml": "[beam]\n",
            "stages/b/1.0.0/parameters.yaml": 'beam: ""\n',
        },
    )
    (told,) = registry.register(folder)["workflows"]
    late = registry.render("vis")["stages"]["b"]
    assert late["to_come"] == [{"name": "beam", "stage": "a"}] and not late["is_whole"]
    (beam,) = [one for one in told["parameters"] if one["name"] == "beam"]
    assert (beam["required"], beam["provided_by"]) == (False, ["a"])
    assert registry.run("vis").name == "vis/run1"


@pytest.mark.req("R004-34")
def test_a_workflow_may_be_registered_that_cannot_run(registry, folder):
    text = sip_files()["vis-1.0.0.yaml"].replace("value: a,", "value: alpha,")
    put(folder, {"vis-1.0.0.yaml": text})
    (told,) = registry.register(folder)["workflows"]
    assert not told["runnable"] and not registry.show("vis")["runnable"]
    with pytest.raises(InvalidDefinition) as refused:
        registry.run("vis", {"site": "north"})
    assert "unknown-stage" in codes(refused)


def test_what_is_not_registered_is_told_with_the_nearest_name(registry, folder):
    with pytest.raises(UnknownWorkflow, match="tidewheel register"):
        registry.show("vis")
    registry.register(folder)
    for ask in (registry.show, registry.check, registry.render, registry.remove):
        with pytest.raises(UnknownWorkflow, match="'vis'"):
            ask("viz")
        with pytest.raises(UnknownWorkflow, match=r"versions: 1\.0\.0"):
            ask("vis/2.0.0")
    for workflow, code in (("viz", "unknown-workflow"), ("vis/2", "unknown-version")):
        with pytest.raises(InvalidDefinition) as refused:
            registry.run(workflow)
        assert codes(refused) == [code]
    assert "'vis'" in refused_hint(registry, "viz")


def refused_hint(registry, workflow):
    with pytest.raises(InvalidDefinition) as refused:
        registry.run(workflow)
    return refused.value.findings[0].hint


def test_a_run_has_the_options_that_were_given(registry, folder):
    registry.register(folder)
    options = RunOptions(priority=7, paused=True)
    run = registry.run("vis/1.0.0", {"site": "x"}, name="mine", queue="q", options=options)
    assert (run.name, run.queue) == ("mine", "q")
    assert (run.options.priority, run.options.paused) == (7, True)


# ---- other kinds ----


@pytest.mark.req("R004-9")
def test_a_flow_cylc_is_registered_with_its_files_and_its_own_version(registry, tmp_path):
    folder = put(tmp_path / "tide", {"flow.cylc": FLOW, "bin/plot": "#!/bin/sh\n"})
    (told,) = registry.register(folder)["workflows"]
    assert (told["name"], told["version"], told["kind"]) == ("tide", "2.1", "flow.cylc")
    registry.register(folder, name="ebb", version="5")
    assert registry.names() == ["ebb/5", "tide/2.1"]
    run = registry.run("ebb")
    kept = registry.ask(lambda client: client.runs.definition(run.name))
    assert run.workflow == "ebb"
    assert {one.path for one in kept.files} == {"bin/plot", "flow.cylc"}


def test_a_template_is_rendered_anew_for_each_run(registry, tmp_path):
    folder = put(tmp_path / "tide", {"flow.cylc": TEMPLATE})
    (told,) = registry.register(folder)["workflows"]
    assert (told["version"], told["runnable"]) == ("3.0", False)
    with pytest.raises(InvalidDefinition) as refused:
        registry.run("tide")
    assert codes(refused) == ["template-undefined"]
    for names in (["a", "b"], ["c"]):
        assert registry.check("tide", {"NAMES": names})["runnable"]
        assert " => ".join(names) in registry.render("tide", {"NAMES": names})["text"]
        run = registry.run("tide", {"NAMES": names})
        kept = registry.ask(lambda client, run=run: client.runs.definition(run.name))
        assert f"R1 = {' => '.join(names)}" in kept.text


def test_a_flow_cylc_with_mistakes_is_refused(registry, tmp_path):
    folder = put(tmp_path / "tide", {"flow.cylc": FLOW.replace("a => b", "a => => b")})
    with pytest.raises(InvalidDefinition):
        registry.register(folder)
    good = put(tmp_path / "b c", {"flow.cylc": FLOW})
    with pytest.raises(InvalidDefinition) as refused:
        registry.register(good)
    assert codes(refused) == ["bad-name"]
    with pytest.raises(InvalidDefinition) as refused:
        registry.register(good, name="bc", version="run3")
    assert codes(refused) == ["bad-name"]
    registry.register(good, name="bc")


def test_a_name_is_for_one_flow_cylc_and_for_no_sip_definition(registry, folder, tmp_path):
    with pytest.raises(InvalidDefinition) as refused:
        registry.register(folder, version="3")
    assert codes(refused) == ["name-of-file"]
    others = [put(tmp_path / name, {"flow.cylc": FLOW}) for name in ("x", "y")]
    with pytest.raises(InvalidDefinition) as refused:
        registry.register(*others, name="z")
    assert codes(refused) == ["one-name"]
    assert len(registry.register(*others, folder)["workflows"]) == 3


@pytest.mark.req("R007-12")
def test_python_is_executed_by_who_registers_it_and_runs_everywhere(registry, tmp_path):
    folder = put(tmp_path / "programs", {"cycle.py": PYTHON, "notes.txt": "x", "b.py": ""})
    (told,) = registry.register(folder / "cycle.py", version="1.1")["workflows"]
    assert (told["name"], told["version"], told["kind"]) == ("cycle", "1.1", "flow.cylc")
    assert told["runnable"] and told["findings"] == []
    kept = [one["path"] for one in registry.show("cycle")["files"]]
    assert kept == ["b.py", "cycle.py", "flow.cylc"]
    assert registry.run("cycle").name == "cycle/run1"
    with pytest.raises(InvalidDefinition) as refused:
        registry.run("cycle", {"a": 1})
    assert codes(refused) == ["no-parameters"]
    assert "register the file again" in str(refused.value.findings[0].hint)


@pytest.mark.req("R007-12")
@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("import nothing_there\n", "python-error", "No module named 'nothing_there'"),
        ("x = 1\n", "no-workflow", "the file defines no workflow"),
        (PYTHON + 'other = Workflow("other")\n', "no-workflow", "several workflows"),
        ("raise SystemExit(3)\n", "python-error", "SystemExit: 3"),
        ("def f(:\n", "python-error", "SyntaxError"),
    ],
)
def test_python_without_one_workflow_is_refused_where_it_is_executed(
    registry, tmp_path, text, code, told
):
    folder = put(tmp_path / "programs", {"cycle.py": text})
    with pytest.raises(InvalidDefinition) as refused:
        registry.register(folder / "cycle.py")
    assert codes(refused) == [code]
    assert told in str(refused.value)
    assert registry.list()["workflows"] == []


# ---- real files of others ----


@with_cases
@pytest.mark.req("R004-3", "R004-4", "R004-34", "R004-41")
@pytest.mark.parametrize(
    ("file", "warned", "hindered", "needed"),
    [
        ("simple-1-stage.json", ["compose-mode"], ["template-syntax"], []),
        (
            "simple-3-stage.yaml",
            ["other-spelling", "compose-mode", "compose-mode"],
            ["unknown-stage", "unknown-stage", "template-syntax", "template-syntax"],
            [],
        ),
        (
            "ingest-test-01.yaml.j2",
            ["compose-key", "compose-key"],
            ["json-quote", "template-undefined"],
            ["worker-needs"] * 4,  # a Swarm, what it allows, paths and labels of its nodes
        ),
    ],
)
def test_a_real_definition_is_registered_but_cannot_run(
    registry, file, warned, hindered, needed
):
    (told,) = registry.register(CASES / file)["workflows"]
    assert (told["name"], told["is_new"], told["runnable"]) == (
        file.partition(".")[0],
        True,
        False,
    )
    found = [(one["severity"], one["code"]) for one in told["findings"]]
    assert found == [
        *(("error", code) for code in hindered),
        *(("warning", code) for code in warned),
        *(("note", code) for code in needed),
    ]
    assert registry.show(told["name"])["findings"] == told["findings"]
    with pytest.raises(InvalidDefinition) as refused:
        registry.run(told["name"])
    assert codes(refused) == hindered
    with pytest.raises(InvalidDefinition):
        registry.register(CASES / file, strict=True)


@with_cases
@pytest.mark.req("R004-8", "R004-36", "R004-37", "R004-38")
@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("no-compose-file.json", ["no-compose-file", "template-syntax"]),
        ("invalid-args-file.json", ["args-file-kind"]),
        ("invalid-parameters-file.json", ["parameters-file-kind"]),
    ],
)
def test_a_real_broken_definition_is_refused_for_its_own_reason(registry, file, found):
    with pytest.raises(InvalidDefinition) as refused:
        registry.register(CASES / file)
    assert codes(refused) == found
    assert registry.names() == []


@with_cases
@pytest.mark.req("R004-1", "R004-7")
def test_a_folder_with_broken_definitions_is_not_registered_at_all(registry):
    with pytest.raises(InvalidDefinition) as refused:
        registry.register(CASES)
    assert codes(refused) == [
        *("args-file-kind", "parameters-file-kind", "no-compose-file", "template-syntax"),
    ]
    assert registry.names() == []
