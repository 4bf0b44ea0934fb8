"""Blocks and objects near and far: the same documents and refusals on a store and a server."""

import json

import pytest

from tests.support import visitor as visitors
from tests.support.http_server import running_server
from tests.support.workflow_folders import put, sip_files
from tidewheel.core.graph.findings import Severity
from tidewheel.core.operator.blocks import InvalidSbi
from tidewheel.core.operator.verbs import Trigger
from tidewheel.errors import Aborted, BadSetting, NotFound, Refused, SbiTaken

A, B, C = (f"PB-20261115-sip-{letter}" for letter in "abc")
SBI = "SBI-20261115-sip-1"


def block(name, after=(), workflow="vis", **changed):
    parameters = changed.pop("parameters", {"site": "north"})
    return {
        "id": name,
        "type": "offline",
        "workflow": {"id": workflow, "version": "1.0.0", "parameters": parameters},
        "dependencies": [
            {"type": "processing_block", "value": parent, "condition": word}
            for parent, word in after
        ],
        **changed,
    }


def sbi(*blocks, name=SBI):
    return {
        "id": name,
        "version": "2.0",
        "scheduling_block": {"id": "SB-1"},
        "processing_blocks": list(blocks),
    }


class Visitor(visitors.Visitor):
    """Somebody who comes near or far."""

    part = "blocks"

    def codes(self, request):
        with pytest.raises(InvalidSbi) as refused:
            self.submit(request)
        errors = [one for one in refused.value.findings if one.severity is Severity.ERROR]
        return [one.code for one in errors]

    def is_empty(self):
        runs = self.ask(lambda client: client.runs.list())["runs"]
        return not (runs or self.sbis()["sbis"] or self.list()["blocks"])


@pytest.fixture
def store(tmp_path):
    """With a workflow that is registered."""
    url = f"sqlite:///{tmp_path}/t.db"
    folder = put(tmp_path / "workflows", sip_files())
    Visitor(url).ask(lambda client: client.workflows.register(folder))
    return url


@pytest.fixture(params=["near", "far"])
def where(request):
    return request.param


@pytest.fixture
def visitor(where, store, tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEWHEEL_HOME", str(tmp_path / "home"))
    if where == "near":
        yield Visitor(store)
        return
    with running_server(store, home=tmp_path / "home") as server:
        yield Visitor(f"http://{server.address}", server.caller("submit", "operate").token)


# ---- instances ----


@pytest.mark.req("R004-43", "R004-53")
def test_an_instance_becomes_runs_called_by_the_ids_of_its_blocks(visitor):
    told = visitor.submit(sbi(block(A, priority=7), block(B, after=[(A, "complete")])))
    assert told["is_new"] and [one["id"] for one in told["blocks"]] == [A, B]
    first, second = told["blocks"]
    assert (first["workflow"], first["version"], first["priority"]) == ("vis", "1.0.0", 7)
    assert first["parameters"] == {"site": "north"}
    assert (first["status"], first["offered"], first["waits"]) == ("created", True, [])
    assert second["waits"] == [f"{A} to be complete (it has not begun)"]
    assert not second["never"]
    run = visitor.ask(lambda client: client.runs.find(A))
    assert json.loads(run.options.parameters) == {"site": "north"}
    assert run.options.priority == 7
    assert visitor.sbi(SBI)["request"]["scheduling_block"] == {"id": "SB-1"}
    assert [one["id"] for one in visitor.sbis()["sbis"]] == [SBI]
    assert [one["id"] for one in visitor.list(sbi=SBI)["blocks"]] == [B, A]
    assert visitor.list(sbi="SBI-x")["blocks"] == []


@pytest.mark.req("R004-53")
def test_the_same_instance_again_is_a_no_op_and_another_is_refused(visitor):
    assert visitor.submit(sbi(block(A)))["is_new"]
    assert not visitor.submit(sbi(block(A)))["is_new"]
    with pytest.raises(SbiTaken, match=SBI):
        visitor.submit(sbi(block(B)))
    assert [one["id"] for one in visitor.list()["blocks"]] == [A]


@pytest.mark.req("R004-54")
def test_nothing_is_stored_unless_every_block_can_run(visitor):
    good = block(A)
    cases = {
        "unknown-workflow": block(B, workflow="vos"),
        "unknown-version": {**good, "id": B, "workflow": {"id": "vis", "version": "9"}},
        "missing-parameter": block(B, parameters={}),
        "unknown-block": block(B, after=[("PB-20261115-sip-z", "complete")]),
        "duplicate-block": block(A),
        "circle": block(B, after=[(A, "complete")]),
    }
    for code, wrong in cases.items():
        first = block(A, after=[(B, "complete")]) if code == "circle" else good
        assert visitor.codes(sbi(first, wrong)) == [code], code
        assert visitor.is_empty()


@pytest.mark.req("R004-54")
def test_every_block_is_judged_before_anything_is_refused(visitor):
    wrong = sbi(block(A, workflow="vos"), block(B, parameters={}))
    assert sorted(visitor.codes(wrong)) == ["missing-parameter", "unknown-workflow"]


@pytest.mark.req("R004-54")
def test_mistakes_of_form_do_not_hide_mistakes_of_content(visitor):
    wrong = sbi(
        block(A, workflow="vos", priority=101),
        block(B, parameters={}, after=[("PB-20261115-sip-z", "complete"), (C, "soon")]),
        block("C", workflow="vis", parameters=3),
        block("D\0", after=[("E\0", "complete")]),
    )
    assert sorted(visitor.codes(wrong)) == [
        *("bad-id", "bad-id", "bad-priority", "missing-parameter", "unknown-block"),
        *("unknown-block", "unknown-condition", "unknown-workflow", "value-kind"),
    ]
    assert visitor.is_empty()


@pytest.mark.req("R004-54")
def test_an_instance_that_is_there_is_no_duplicate_of_itself(visitor):
    visitor.submit(sbi(block(A)))
    assert visitor.codes(sbi(block(A, priority=101))) == ["bad-priority"]


@pytest.mark.req("R004-54")
def test_a_parameter_that_changes_nothing_is_told_and_the_block_accepted(visitor):
    told = visitor.submit(sbi(block(A, parameters={"site": "north", "siet": "south"})))
    assert "unused-parameter" in [one["code"] for one in told["findings"]]


def test_the_id_of_a_block_is_not_given_twice(visitor):
    visitor.submit(sbi(block(A)))
    other = sbi(block(A), name="SBI-20261115-sip-2")
    assert visitor.codes(other) == ["duplicate-block"]
    assert [one["id"] for one in visitor.sbis()["sbis"]] == [SBI]


def test_a_workflow_that_cannot_run_is_refused(visitor, store, tmp_path):
    files = sip_files("odd-1.0.0.yaml")
    files["odd-1.0.0.yaml"] = files["odd-1.0.0.yaml"].replace("value: a,", "value: nobody,")
    folder = put(tmp_path / "odd", files)
    Visitor(store).ask(lambda client: client.workflows.register(folder))
    assert visitor.codes(sbi(block(A, workflow="odd"))) == ["unknown-stage"]
    assert visitor.is_empty()


def test_findings_name_the_file_and_the_line(visitor, tmp_path):
    path = tmp_path / "request.yaml"
    path.write_text(
        f"id: {SBI}\nversion: '2.0'\nprocessing_blocks:\n  - id: {A}\n    tipe: x\n"
    )
    with pytest.raises(InvalidSbi) as refused:
        visitor.submit(path)
    places = {(one.code, str(one.position)) for one in refused.value.findings}
    assert ("unknown-key", "request.yaml:5:5") in places


@pytest.mark.req("R004-54", "R004-56")
def test_what_is_not_there_is_told_where_it_is_named(visitor, tmp_path):
    path = tmp_path / "request.yaml"
    path.write_text(
        f"id: {SBI}\nversion: '2.0'\nprocessing_blocks:\n  - id: {A}\n    type: offline\n"
        f"    workflow:\n      id: nothing\n    dependencies:\n"
        f"      - {{type: processing_block, value: {B}, condition: complete}}\n"
    )
    with pytest.raises(InvalidSbi) as refused:
        visitor.submit(path)
    errors = [one for one in refused.value.findings if one.severity is Severity.ERROR]
    assert {(one.code, one.position.line) for one in errors} == {
        ("unknown-block", 9),
        ("unknown-workflow", 7),
    }


@pytest.mark.req("R004-43", "R004-46", "R004-47")
def test_parameters_may_be_given_to_one_stage_by_its_id(visitor):
    given = {"a": {"site": "north"}}
    told = visitor.submit(sbi(block(A, parameters=given)))
    assert told["findings"] == []
    assert told["blocks"][0]["parameters"] == given
    wrong = sbi(block(B, parameters={"b": {"site": "north"}}), name="SBI-20261115-sip-2")
    assert visitor.codes(wrong) == ["missing-parameter"]


# ---- blocks ----


@pytest.mark.req("R004-56", "R004-61")
def test_a_block_shows_what_it_waits_for_and_its_stages(visitor):
    visitor.submit(sbi(block(A), block(B, after=[(A, "failed")])))
    shown = visitor.show(B)
    assert shown["needs"] == [
        {"block": A, "condition": "failed", "status": "created", "state": "open"}
    ]
    assert [(one["stage"], one["status"], one["state"]) for one in shown["stages"]] == [
        ("a", "created", "waiting"),
        ("b", "created", "waiting"),
    ]
    visitor.abort(A)
    shown = visitor.show(B)
    assert shown["never"] and shown["waits"] == [f"{A} to be failed (it is aborted)"]
    assert shown["needs"][0]["status"] == "aborted"
    why = visitor.ask(lambda client: client.runs.why(B, "1/a"))["tasks"]
    assert f"{B} can never begin: it needs {A} to be failed" in json.dumps(why)
    run = visitor.ask(lambda client: client.runs.show(B))
    assert f"{A} to be failed" in json.dumps(run["waits"])


@pytest.mark.req("R004-56")
def test_a_block_never_begins_that_waits_for_one_that_never_does(visitor):
    visitor.submit(sbi(block(A), block(B, after=[(A, "complete")])))
    chain = sbi(block(C, after=[(B, "finished")]), name="SBI-20261115-sip-2")
    assert not visitor.submit(chain)["blocks"][0]["never"]
    visitor.abort(A)
    for told in (visitor.list()["blocks"], visitor.sbi("SBI-20261115-sip-2")["blocks"]):
        assert {one["id"]: one["never"] for one in told} | {A: False, B: True} == {
            A: False,
            B: True,
            C: True,
        }
    assert visitor.show(C)["never"]


@pytest.mark.req("R004-56")
def test_why_names_the_block_at_the_root_and_what_would_help(visitor):
    visitor.submit(sbi(block(A), block(B, after=[(A, "complete")])))
    chain = sbi(block(C, after=[(B, "finished")]), name="SBI-20261115-sip-2")
    visitor.submit(chain)

    def why():
        return visitor.ask(lambda client: client.runs.why(C, "1/a"))["tasks"][0]["reasons"]

    assert why()[0] == {
        "text": f"{C} waits for {B} to be finished (it has not begun); {B} waits for {A} to be "
        "complete (it has not begun)",
        "passes": True,
        "needs_action": False,
        "until": None,
        "commands": [],
        "actions": [],
    }
    visitor.abort(A)
    root = why()[0]
    assert root["text"] == (
        f"{C} can never begin: it needs {B} to be finished (it has not begun); {B} needs {A} "
        "to be complete (it is aborted), and that can no longer happen"
    )
    assert not root["passes"]
    assert root["commands"] == [f"tidewheel blocks abort {C}"], "an abort is final"
    assert visitor.ask(lambda client: client.runs.show(C))["waits"] == [root]


@pytest.mark.req("R004-56")
def test_of_several_waits_the_one_that_needs_somebody_is_named(visitor):
    d, e = "PB-20261115-sip-d", "PB-20261115-sip-e"
    first = [(d, "complete"), (B, "complete")]
    visitor.submit(
        sbi(block(A), block(B, after=[(A, "complete")]), block(d), block(e, after=first))
    )
    visitor.submit(sbi(block(C, after=[(e, "complete")]), name="SBI-20261115-sip-2"))
    visitor.abort(A)
    [wait] = visitor.ask(lambda client: client.runs.show(C))["waits"]
    assert f"{B} needs {A} to be complete (it is aborted)" in wait["text"]
    assert wait["commands"] == [f"tidewheel blocks abort {C}"]


@pytest.mark.req("R004-60")
def test_a_block_that_has_not_begun_is_aborted_at_once(visitor):
    visitor.submit(sbi(block(A)))
    told = visitor.abort(A, "wrong field")
    assert (told["status"], told["run_status"]) == ("aborted", "stopped")
    assert (told["changed"], told["offered"]) == (True, False)
    assert told["reason"].startswith("aborted by ") and told["reason"].endswith(": wrong field")
    again = visitor.abort(A)
    assert (again["changed"], again["reason"]) == (False, told["reason"])
    for ask in (
        lambda client: client.runs.give(A, Trigger(ids=("1/a",))),
        lambda client: client.runs.carry_on(A),
    ):
        with pytest.raises(Aborted, match="wrong field"):
            visitor.ask(ask)
    assert visitor.show(A)["reason"] == told["reason"]


def test_what_is_not_there_is_not_found(visitor):
    for ask in (visitor.show, visitor.abort, visitor.sbi, visitor.remove_object):
        with pytest.raises(NotFound, match="PB-x"):
            ask("PB-x")


@pytest.mark.req("R004-60", "R004-61")
def test_an_aborted_block_says_so_of_each_stage_and_in_its_history(visitor):
    visitor.submit(sbi(block(A), block(B, after=[(A, "complete")])))
    visitor.abort(B, "wrong field")
    assert [one["status"] for one in visitor.show(B)["stages"]] == ["aborted", "aborted"]
    told = visitor.history(B)
    assert [(one["event"], one["stage"]) for one in told["events"]] == [
        ("created", None),
        ("aborted", None),
    ]
    assert told["status"] == "aborted" and told["events"][0]["text"] == SBI
    assert told["events"][1]["text"].endswith(": wrong field")
    assert told["events"][0]["at"] <= told["events"][1]["at"]


# ---- instances as a whole ----

TWO = "SBI-20261115-sip-2"


@pytest.mark.req("R004-61")
def test_an_instance_has_the_status_of_its_blocks_and_shows_subarray_and_scans(visitor):
    more = {"subarray_id": "3", "scans": [{"id": "s1"}, {"id": "s2"}]}
    told = visitor.submit(sbi(block(A), block(B, after=[(A, "complete")])) | more)
    assert (told["status"], told["counts"]) == ("created", {"created": 2})
    assert [one["status"] for one in told["blocks"]] == ["created", "waiting_for_blocks"]
    visitor.abort(A)
    [row] = visitor.sbis()["sbis"]
    assert (row["status"], row["counts"]) == ("aborted", {"aborted": 1, "created": 1})
    assert (row["scheduling_block"], row["subarray_id"], row["scans"]) == ("SB-1", "3", 2)
    shown = visitor.sbi(SBI)
    assert {key: shown[key] for key in row} == row


def test_instances_and_blocks_are_listed_by_what_they_are(visitor):
    visitor.submit(sbi(block(A), block(B)) | {"subarray_id": "3"})
    visitor.submit(sbi(block(C), name=TWO))
    visitor.abort(A)
    visitor.abort(C)

    def instances(**which):
        return [one["id"] for one in visitor.sbis(**which)["sbis"]]

    def blocks(**which):
        return [one["id"] for one in visitor.list(**which)["blocks"]]

    assert instances(status="aborted") == [TWO, SBI]
    assert instances(status="created") == []
    assert instances(subarray="3") == [SBI]
    assert instances(subarray="3", status="running") == []
    assert blocks(status="aborted") == [C, A]
    assert blocks(status="Aborted", sbi=SBI) == [A]
    assert blocks(status="waiting for blocks") == []
    assert blocks(workflow="vis", status="created") == [B]
    assert blocks(workflow="vos") == []
    for ask in (visitor.sbis, visitor.list):
        with pytest.raises(Refused, match="'stalled'; expected created, waiting_for_blocks"):
            ask(status="stalled")


@pytest.mark.req("R004-60")
def test_an_instance_is_aborted_whole_and_again_changes_nothing(visitor):
    after = [(A, "aborted")]  # and so would begin when that one is
    visitor.submit(sbi(block(A), block(B), block(C, after=after)))
    first = visitor.abort(B, "first")["reason"]
    told = visitor.abort_sbi(SBI, "wrong field")
    assert (told["status"], told["changed"]) == ("aborted", True)
    changed = {one["id"]: (one["changed"], one["refused"]) for one in told["blocks"]}
    assert changed == {A: (True, None), B: (False, None), C: (True, None)}
    reasons = {one["id"]: one["reason"] for one in told["blocks"]}
    assert reasons[B] == first and reasons[A].endswith(": wrong field")
    again = visitor.abort_sbi(SBI, "again")
    assert (again["changed"], again["counts"]) == (False, {"aborted": 3})
    assert {one["id"]: one["reason"] for one in again["blocks"]} == reasons
    with pytest.raises(NotFound, match="SBI-x"):
        visitor.abort_sbi("SBI-x")


@pytest.mark.req("R004-54")
def test_a_dry_run_judges_everything_and_stores_nothing(visitor):
    asked = sbi(block(A, priority=7), block(B, after=[(A, "complete")]))
    told = visitor.submit(asked, dry_run=True)
    assert (told["is_new"], told["dry_run"], told["status"]) == (True, True, "created")
    first, second = told["blocks"]
    assert (first["priority"], first["run"], first["status"]) == (7, 0, "created")
    assert second["waits"] == [f"{A} to be complete (it has not begun)"]
    assert visitor.is_empty()
    with pytest.raises(InvalidSbi):
        visitor.submit(sbi(block(A, workflow="vos")), dry_run=True)
    real = visitor.submit(asked)
    assert (real["is_new"], real["dry_run"]) == (True, False)
    assert not visitor.submit(asked, dry_run=True)["is_new"]
    with pytest.raises(SbiTaken):
        visitor.submit(sbi(block(A)), dry_run=True)
    later = sbi(block(C, after=[(A, "failed")]), name=TWO)
    visitor.abort(A)
    [planned] = visitor.submit(later, dry_run=True)["blocks"]
    assert planned["never"] and planned["needs"][0]["status"] == "aborted"


# ---- objects ----


@pytest.mark.req("R004-29")
def test_objects_are_posted_listed_and_removed(visitor):
    visitor.post_objects("a/b c", "z", facts={"size": 3})
    found = visitor.objects()["objects"]
    assert [(one["name"], one["facts"]) for one in found] == [
        ("a/b c", {"size": 3}),
        ("z", {"size": 3}),
    ]
    assert visitor.objects(after="b")["objects"] == found[1:]
    assert visitor.remove_object("a/b c") == found[0]
    assert [one["name"] for one in visitor.objects()["objects"]] == ["z"]


@pytest.mark.parametrize("wrong", [(), ("a\nb",), ("x" * 201,)])
def test_an_object_that_cannot_be_is_refused(visitor, wrong):
    with pytest.raises(Refused):
        visitor.post_objects(*wrong)
    with pytest.raises((BadSetting, Refused)):
        visitor.post_objects("a", facts={"x": "y" * 20_000})
    assert visitor.objects()["objects"] == []


# ---- who may ----

OTHERS = ["other", B, "SBI-20261115-sip-2"]


def test_a_token_is_good_for_its_workflows_only(store, tmp_path):
    with running_server(store, home=tmp_path / "home") as server:
        url = f"http://{server.address}"
        everybody = Visitor(url, server.caller("submit", "operate").token)
        everybody.submit(sbi(block(A)))
        other = Visitor(
            url,
            server.caller("submit", "operate", names=OTHERS).token,
        )
        reader = Visitor(url, server.caller("read").token)
        for ask in (
            lambda: other.submit(sbi(block(B), name="SBI-20261115-sip-2")),
            lambda: other.show(A),
            lambda: other.sbi(SBI),
            lambda: other.abort(A),
            lambda: other.abort_sbi(SBI),
            lambda: other.history(A),
            lambda: reader.submit(sbi(block(B), name="SBI-20261115-sip-2")),
            lambda: reader.abort(A),
            lambda: reader.abort_sbi(SBI),
            lambda: reader.post_objects("x"),
            lambda: reader.remove_object("x"),
        ):
            with pytest.raises(Refused) as refused:
                ask()
            assert refused.value.code == "forbidden"
        wrong = sbi(block(B, workflow="vos", priority=101), name="SBI-20261115-sip-2")
        assert other.codes(wrong) == ["bad-priority"]  # and nothing of what is registered
        assert other.sbis()["sbis"] == other.list()["blocks"] == []
        assert reader.show(A)["status"] == "created"
        assert len(everybody.list()["blocks"]) == 1


def test_blocks_that_a_token_may_not_see_cannot_be_found_out_by_naming_them(store, tmp_path):
    folder = put(tmp_path / "others", sip_files("other-1.0.0.yaml"))
    Visitor(store).ask(lambda client: client.workflows.register(folder))
    with running_server(store, home=tmp_path / "home") as server:
        url = f"http://{server.address}"
        Visitor(url, server.caller("submit").token).submit(sbi(block(A)))
        other = Visitor(url, server.caller("submit", names=OTHERS).token)

        def words(*blocks):
            with pytest.raises(InvalidSbi) as refused:
                other.submit(sbi(*blocks, name="SBI-20261115-sip-2"))
            return [f"{one.code}: {one.message}" for one in refused.value.findings]

        def depends_on(parent):
            asked = block(B, after=[(parent, "complete")], workflow="other")
            return [one.replace(parent, "PARENT") for one in words(asked)]

        assert depends_on(A) == depends_on(C)
        assert depends_on(A)[0].startswith("unknown-block: ")
        for name in (A, C):  # the one is there, the other is not
            with pytest.raises(Refused, match="this token is not for") as refused:
                other.submit(sbi(block(name, workflow="other"), name="SBI-20261115-sip-2"))
            assert refused.value.code == "forbidden"
