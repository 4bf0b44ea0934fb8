"""POST /runs: a definition that is sent begins a run, or every reason why not comes back."""

import base64
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.http_server import in_path, running_server
from tidewheel.config import home_directory

FLOW = """#!jinja2
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = {{ LAST }}
    [[graph]]
        P1 = a[-P1] => a => b
[runtime]
    [[a, b]]
        script = true
"""
NO_BASE64 = [{"path": "f", "content": "?"}]
PLAIN = "[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\nscript = true\n"


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def server(tmp_path, home):
    with running_server(f"sqlite:///{tmp_path}/t.db", home=home) as running:
        yield running


@pytest.fixture
def sender(server):
    return server.caller("submit")


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """Somebody whose requests are all bad, so that one server is enough for them."""
    folder = tmp_path_factory.mktemp("refused")
    with running_server(f"sqlite:///{folder}/t.db", home=folder / "home") as running:
        sender = running.caller("submit")
        yield sender
        assert sender.get("/runs").json["runs"] == []


def captured(text=PLAIN, workflow="tide", **fields):
    files = [
        {"path": path, "content": base64.b64encode(content).decode()}
        for path, content in fields.pop("files", {}).items()
    ]
    return {"definition": {"workflow": workflow, "text": text, "files": files} | fields}


# ---- good ones ----


def test_a_text_is_rendered_and_begins_a_run(sender):
    body = {
        "flow": FLOW,
        "workflow": "tide",
        "variables": {"LAST": 3},
        "options": {"stop": "2"},
    }
    begun = sender.post("/runs", body)
    assert begun.status == 201, begun.body
    run = begun.json["run"]
    assert (run["name"], run["status"], run["offered"]) == ("tide/run1", "created", True)
    assert (run["queue"], run["options"]["stop"]) == ("run:tide/run1", "2")
    assert not run["options"]["job_commands"]
    shown = sender.get("/runs/tide").json
    assert shown["bounds"]["final"] == "3"
    kept = sender.get("/runs/tide/definition").json
    assert "final cycle point = 3" in kept["text"] and kept["variables"] == ["LAST=3"]
    assert sender.post("/runs", body).json["run"]["name"] == "tide/run2"


def test_a_captured_definition_is_kept_with_its_files(sender, home):
    files = {"bin/plot": b"\x00\xff", "etc/more/x.txt": b"text"}
    body = captured(files=files) | {"name": "tide/first", "queue": "tides", "folder": "a:/b"}
    begun = sender.post("/runs", body).json["run"]
    assert (begun["name"], begun["queue"], begun["folder"]) == ("tide/first", "tides", "a:/b")
    assert begun["options"]["job_commands"]
    kept = sender.get(f"/runs/{in_path('tide/first')}/definition").json
    assert {one["path"]: base64.b64decode(one["content"]) for one in kept["files"]} == files
    one = sender.get(f"/runs/{in_path('tide/first')}/definition?path=bin/plot")
    assert (one.body, one.headers["x-executable"]) == (b"\x00\xff", "false")
    assert one.headers["content-type"] == "application/octet-stream"
    assert sender.get(f"/runs/{in_path('tide/first')}/definition?path=bin").status == 404
    assert not (home / "runs").exists()  # until a scheduler takes it


def test_the_digest_is_what_the_content_says(sender):
    one, same, other = (
        sender.post("/runs", captured(files={"f": content})).json["run"]["definition"]
        for content in (b"1", b"1", b"2")
    )
    assert one == same != other


def test_the_same_key_makes_one_run_even_if_the_answer_was_lost(server, sender):
    first = sender.post("/runs", captured(), Idempotency_Key="k")
    again = sender.post("/runs", captured(), Idempotency_Key="k")
    assert (again.status, again.json) == (201, first.json)
    assert sender.post("/runs", captured(workflow="x"), Idempotency_Key="k").status == 409
    other = server.caller("submit").post("/runs", captured(), Idempotency_Key="k")
    assert other.json["run"]["name"] == "tide/run2"
    assert len(sender.get("/runs").json["runs"]) == 2


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_requests_that_meet_make_one_run_for_one_key(kind, tmp_path, request):
    url = f"sqlite:///{tmp_path}/t.db"
    if kind == "postgres":
        url = request.getfixturevalue("postgres_url")
    with running_server(url, home=tmp_path / "home") as running:
        sender = running.caller("submit")

        def send(key):
            return sender.post("/runs", captured(), Idempotency_Key=key).json["run"]["name"]

        with ThreadPoolExecutor(8) as pool:
            names = list(pool.map(send, ["a", "b"] * 4))
        assert len(set(names[::2])) == len(set(names[1::2])) == 1
        assert {one["name"] for one in sender.get("/runs").json["runs"]} == set(names)


# ---- bad ones ----


def test_everything_that_is_wrong_is_told_with_its_place(refused):
    text = "[scheduling]\n  [[graph]]\n    R1 = a => \n[runtime]\n  [[a]]\n    scirpt = true\n"
    for body in (captured(text), {"flow": text, "workflow": "tide"}):
        answer = refused.post("/runs", body)
        assert (answer.status, answer.code) == (422, "invalid_definition")
        found = {(one["severity"], one["line"]): one for one in answer.json["findings"]}
        assert {("error", 3), ("error", 6)} <= found.keys()
        slip = found["error", 6]
        assert slip["hint"] == "did you mean 'script'?" and slip["file"] == "flow.cylc"
        assert {"code", "message", "column"} <= slip.keys()


def test_a_template_gets_what_it_needs_and_nothing_more(refused, tmp_path):
    """S14: no file, no environment, no code of the server."""
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    for tried in (
        f"{{% include '{secret}' %}}",
        f"%include {secret}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{% import os %}",
        "{% for i in range(10**9) %}x{% endfor %}",
    ):
        body = {"flow": f"#!jinja2\n{tried}\n{PLAIN}", "workflow": "tide"}
        answer = refused.post("/runs", body)
        assert answer.status == 422, tried
        assert b"hunter2" not in answer.body
        assert str(home_directory()).encode() not in answer.body
    lost = refused.post("/runs", {"flow": FLOW, "workflow": "tide"})
    assert lost.status == 422 and "LAST" in json.dumps(lost.json["findings"])


@pytest.mark.parametrize(
    "path",
    [
        *("../x", "/etc/passwd", "a/../../x", ".", "a//b", "a/", "./a", "x\x00y", "x\ny"),
        *("log/job/1/a", "share/x", "work", "a/" + "b" * 300, "\x1b[31m"),
    ],
)
def test_no_file_leads_out_of_the_folder_of_the_run(refused, path):
    answer = refused.post("/runs", captured(files={path: b""}))
    assert answer.status == 422, path


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "name a registered workflow"),
        ({"flow": PLAIN}, "workflow is missing"),
        ({"flow": PLAIN, "workflow": "tide"} | captured(), "either flow"),
        (captured() | {"variables": {"A": 1}}, "only for flow"),
        ({"flow": PLAIN, "workflow": "ti/../de"}, ""),
        ({"flow": PLAIN, "workflow": "../tide"}, ""),
        (captured(workflow="ti\nde"), ""),
        (captured() | {"name": "../../x"}, ""),
        (captured() | {"queue": "a\nb"}, ""),
        (captured() | {"options": {"mode": "fast"}}, "mode"),
        (captured() | {"options": {"final": "never"}}, ""),
        (captured() | {"options": {"stall_timeout": "soon"}}, ""),
        (captured() | {"colour": "red"}, "colour"),
        (captured(kind="python", text="flow.py"), "because loading one executes its code"),
        (captured(kind="ksh"), "kind"),
        ({"definition": {"workflow": "t", "text": PLAIN, "files": NO_BASE64}}, "base64"),
        (captured(files={"a": b"", "a/b": b""}), "is both a file and a folder"),
        ({"flow": 7, "workflow": []}, "flow"),
        ([], "object"),
    ],
)
def test_a_request_that_breaks_rules_is_refused(refused, body, said):
    answer = refused.post("/runs", body)
    assert answer.status == 422, answer.body
    assert said in answer.body.decode()


UNKNOWN = {
    '{"start_tasks": ["1/aa"]}': "there is no task aa in this workflow",
    '{"hold_after": "soon"}': "'soon' is not a point of this run",
    '{"stop": "0"}': "the stop point 0 is before 1",
    '{"parameters": "{}"}': "-p (parameters) is for a SIP definition, not for a flow.cylc",
}


@pytest.mark.parametrize("options", UNKNOWN)
@pytest.mark.parametrize("body", [captured(), {"flow": PLAIN, "workflow": "tide"}])
def test_a_run_is_not_made_with_options_that_it_could_never_begin_with(refused, body, options):
    answer = refused.post("/runs", {**body, "options": json.loads(options)})
    assert answer.status in (409, 422), answer.body
    assert UNKNOWN[options] in json.dumps(answer.json)


def test_a_run_is_not_resumed_with_points_that_it_does_not_have(server, sender):
    run = sender.post("/runs", captured()).json["run"]["name"]
    operator = server.caller("submit", "operate")
    for options, said in UNKNOWN.items():
        if "start_tasks" not in options:
            body = {"options": json.loads(options)}
            answer = operator.post(f"/runs/{in_path(run)}/carry-on", body)
            assert answer.status in (409, 422), answer.body
            assert said in json.dumps(answer.json)


def test_limits_are_told(refused):
    many = [{"path": f"f{n}"} for n in range(10_001)]
    body = {"definition": {"workflow": "t", "text": PLAIN, "files": many}}
    assert refused.post("/runs", body).status == 422
    assert refused.post("/runs", {"flow": "#" * 5_000_001, "workflow": "t"}).status == 422
    assert refused.post("/runs", captured(files={"f": b"x" * 7_000_000})).status == 413


def test_who_may_begin_and_end_runs(server):
    """S5, S6: scope, workflow and queue."""
    body = captured()
    for scope in ("read", "worker", "operate"):
        assert server.caller(scope).post("/runs", body).status == 403, scope
    assert server.caller("submit", names=["sea*"]).post("/runs", body).status == 403
    assert server.caller("submit", queues=["other"]).post("/runs", body).status == 403
    narrow = server.caller("submit", names=["tide"])
    assert narrow.post("/runs", body | {"queue": "other"}).status == 403
    assert narrow.post("/runs", body | {"name": "sea/run1"}).status == 403
    assert narrow.post("/runs", body).status == 201
    assert narrow.ask("DELETE", f"/runs/{in_path('tide/run1')}").status == 403
    elsewhere = server.caller("operate", names=["sea*"])
    assert elsewhere.ask("DELETE", f"/runs/{in_path('tide/run1')}").status == 403
    # What it is called is not told, nor whether it is there.
    for path, status in (("/runs/tide/definition", 403), ("/runs/1", 404), ("/runs/t", 403)):
        assert (found := elsewhere.get(path)).status == status
        assert b"tide/run" not in found.body
    assert elsewhere.post(f"/runs/{in_path('tide/run1')}/carry-on", {}).status == 403
    operator = server.caller("operate", names=["tide"])
    assert operator.post("/runs/tide/definitions", body["definition"]).status == 201
    gone = operator.ask("DELETE", f"/runs/{in_path('tide/run1')}")
    assert (gone.status, gone.json) == (200, {"deleted": "tide/run1"})
    assert operator.get("/runs/tide").status == 404
    audit = server.caller("admin").get("/audit").json
    assert "tide/run1" in json.dumps(audit)
