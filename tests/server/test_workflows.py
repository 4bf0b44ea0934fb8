"""/workflows: bundles are registered whole or refused whole, by whoever may (R004, S13)."""

import base64
import gzip
import io
import tarfile
import zipfile

import pytest

from tests.support.http_server import running_server
from tests.support.workflow_folders import FLOW, PYTHON, sip_files

TAR = {"Content-Type": "application/x-tar"}
GZIP = {"Content-Type": "application/gzip"}
ZIP = {"Content-Type": "application/zip"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workflows")
    with running_server(f"sqlite:///{folder}/t.db", home=folder / "home") as running:
        yield running


@pytest.fixture
def sender(server):
    """Finds an empty registry, and leaves one."""
    caller = server.caller("submit")
    yield caller
    for one in caller.get("/workflows").json["workflows"]:
        gone = caller.ask("DELETE", f"/workflows/{one['name']}/{one['version']}")
        assert gone.status == 200, gone.body


def tar_of(files, mode="w"):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode=mode) as archive:
        for path, text in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return raw.getvalue()


def zip_of(files):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return raw.getvalue()


def names(caller):
    return [
        f"{one['name']}/{one['version']}" for one in caller.get("/workflows").json["workflows"]
    ]


def found(reply):
    assert (reply.status, reply.code) == (422, "invalid_definition"), reply.body
    return [one["code"] for one in reply.json["findings"]]


# ---- the ways to send a bundle ----


@pytest.mark.req("R004-1", "R004-3")
@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (tar_of(sip_files()), TAR),
        (tar_of(sip_files(), "w:gz"), GZIP),
        (zip_of(sip_files()), ZIP),
    ],
    ids=["tar", "tar.gz", "zip"],
)
def test_an_archive_is_registered(sender, content, kind):
    made = sender.ask("POST", "/workflows", content, **kind)
    assert made.status == 201, made.body
    (told,) = made.json["workflows"]
    assert (told["name"], told["version"], told["runnable"]) == ("vis", "1.0.0", True)
    again = sender.ask("POST", "/workflows", content, **kind)
    assert (again.status, again.json["workflows"][0]["is_new"]) == (200, False)
    shown = sender.get("/workflows/vis").json
    assert shown["registered_by"] == "a test"
    assert {one["path"] for one in shown["files"]} == set(sip_files())


def test_files_are_sent_as_json_texts_or_bytes(sender):
    files = sip_files()
    script = files.pop("stages/b/1.0.0/script.sh")
    files["stages/b/1.0.0/data"] = {"base64": base64.b64encode(bytes(range(256))).decode()}
    files["stages/b/1.0.0/script.sh"] = script
    body = {"files": files, "executable": ["stages/b/1.0.0/script.sh"]}
    assert sender.post("/workflows", body).status == 201
    listed = {one["path"]: one for one in sender.get("/workflows/vis/1.0.0").json["files"]}
    assert listed["stages/b/1.0.0/data"]["size"] == 256
    assert listed["stages/b/1.0.0/script.sh"]["executable"]


def test_where_files_came_from_is_what_the_sender_says_and_nobody_fetches_it(sender):
    said = {"url": "https://no.example.org/vis.tar.gz", "commit": "a" * 40}
    body = {"files": sip_files(), "source": said}
    assert sender.post("/workflows", body).status == 201
    whole = {"ref": "", "folder": "", "sha256": ""} | said
    assert sender.get("/workflows/vis").json["source"] == whole
    assert sender.post("/workflows/vis/check", {}).json["source"] == whole
    for wrong in ({"url": ""}, {"url": "x" * 3_000}, {"url": "x", "other": 1}, "x"):
        assert sender.post("/workflows", body | {"source": wrong}).status == 422


def test_what_is_kept_is_for_those_who_may_see_the_workflow(server, sender):
    assert sender.post("/workflows", {"files": sip_files()}).status == 201
    kept = sender.get("/workflows/vis/1.0.0/definition").json
    files = {one["path"]: base64.b64decode(one["content"]).decode() for one in kept["files"]}
    assert (files, kept["kind"], kept["text"]) == (sip_files(), "sip", "vis-1.0.0.yaml")
    assert sender.get("/workflows/vis/2.0/definition").status == 404
    stranger = server.caller("read", names=("other*",))
    refused = stranger.get("/workflows/vis/1.0.0/definition")
    assert refused.status in (403, 404), refused.body
    assert stranger.get("/workflows/nothing/1.0.0/definition").status == refused.status


def test_a_bundle_of_one_folder_is_what_lies_in_it(sender):
    inside = {f"workflows/{path}": text for path, text in sip_files().items()}
    assert sender.ask("POST", "/workflows", tar_of(inside), **TAR).status == 201
    flow = zip_of({"tide/flow.cylc": FLOW, "tide/bin/x": "x"})
    assert sender.ask("POST", "/workflows", flow, **ZIP).status == 201
    assert names(sender) == ["tide/2.1", "vis/1.0.0"]


def test_a_flow_cylc_is_called_as_it_is_said(sender):
    body = {"files": {"flow.cylc": FLOW}}
    assert found(sender.post("/workflows", body)) == ["bad-name"]
    assert sender.post("/workflows", body | {"name": "tide", "version": "9"}).status == 201
    archive = tar_of({"flow.cylc": FLOW})
    said = sender.ask("POST", "/workflows?name=ebb&version=1", archive, **TAR)
    assert said.status == 201, said.body
    assert names(sender) == ["ebb/1", "tide/9"]


@pytest.mark.req("R004-7")
def test_of_several_bundles_all_or_none_are_registered(sender):
    good = {"files": sip_files()}
    bad = {"files": {"flow.cylc": "[scheduling]\n"}, "name": "bad"}
    assert found(sender.post("/workflows", {"bundles": [good, bad]}))
    assert names(sender) == []
    other = {"files": {"flow.cylc": FLOW}, "name": "tide"}
    assert sender.post("/workflows", {"bundles": [good, other]}).status == 201
    assert names(sender) == ["tide/2.1", "vis/1.0.0"]


@pytest.mark.req("R004-6")
def test_other_content_is_a_conflict(sender):
    assert sender.post("/workflows", {"files": sip_files()}).status == 201
    changed = sip_files(script_sh="echo other\n")
    refused = sender.post("/workflows", {"files": changed})
    assert (refused.status, refused.code) == (409, "already_registered")
    assert "vis/1.0.0" in refused.json["message"]


# ---- what is refused ----


def entry(name, kind=tarfile.REGTYPE, mode=0o644):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname = kind, mode, "vis-1.0.0.yaml"
    return info


def with_entry(info):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for path, text in sip_files().items():
            good = tarfile.TarInfo(path)
            good.size = len(text.encode())
            archive.addfile(good, io.BytesIO(text.encode()))
        archive.addfile(info)
    return raw.getvalue()


@pytest.mark.req("S13")
@pytest.mark.parametrize(
    ("info", "code"),
    [
        (entry("../evil"), "bad-path"),
        (entry("/etc/cron.d/evil"), "bad-path"),
        (entry("vis-1.0.0.yaml"), "bad-path"),
        (entry("stages/a/1.0.0/l", tarfile.SYMTYPE), "link"),
        (entry("stages/a/1.0.0/l", tarfile.LNKTYPE), "link"),
        (entry("stages/a/1.0.0/d", tarfile.CHRTYPE), "not-a-file"),
        (entry("stages/a/1.0.0/s", mode=0o4755), "special-mode"),
    ],
    ids=["..", "absolute", "twice", "symlink", "hardlink", "device", "setuid"],
)
def test_one_bad_entry_keeps_the_whole_archive_out(sender, info, code):
    reply = sender.ask("POST", "/workflows", with_entry(info), **TAR)
    assert found(reply) == [code]
    assert names(sender) == []


@pytest.mark.req("S13")
def test_a_million_entries_and_a_bomb_are_refused(sender):
    many = gzip.compress(tarfile.TarInfo("a").tobuf() * 1_000_000)
    assert found(sender.ask("POST", "/workflows", many, **GZIP)) == ["too-many-files"]
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(40):
            archive.writestr(f"f{number}", bytes(1024 * 1024))
    reply = sender.ask("POST", "/workflows", bomb.getvalue(), **ZIP)
    assert found(reply) == ["archive-too-large"]


@pytest.mark.req("S13")
@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "", "log/x", "a\x00b"])
def test_a_path_in_json_that_leads_elsewhere_is_refused(sender, path):
    body = {"files": {**sip_files(), path: "x"}}
    reply = sender.post("/workflows", body)
    assert reply.status == 422, reply.body
    assert names(sender) == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"files": {}},
        {"files": {"a.yaml": 3}},
        {"files": {"a.yaml": {"base64": "?"}}},
        {"files": {"a.yaml": "x"}, "bundles": [{"files": {"b.yaml": "x"}}]},
        {"file": {"a.yaml": "x"}},
    ],
)
def test_json_that_is_no_bundle_is_refused(sender, body):
    reply = sender.post("/workflows", body)
    assert (reply.status, reply.code) == (422, "invalid"), reply.body


def test_other_media_are_refused(sender):
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert sender.ask("POST", "/workflows", b"a=b", **form).status == 415
    assert found(sender.ask("POST", "/workflows", b"\xff" * 600, **TAR)) == ["bad-archive"]
    assert sender.ask("POST", "/workflows", bytes(9 * 1024 * 1024), **TAR).status == 413


def test_no_code_of_a_definition_is_executed(sender):
    reply = sender.post("/workflows", {"files": {"cycle.py": PYTHON}, "file": "cycle.py"})
    assert found(reply) == ["python-definition"]
    assert found(sender.post("/workflows", {"files": {"a.py": PYTHON}})) == [
        "python-definition"
    ]
    filters = {
        "flow.cylc": "#!jinja2\n[scheduling]\n[[graph]]\nR1 = {{ 'a' | evil }}\n",
        "Jinja2Filters/evil.py": "def evil(text):\n    return text\n",
    }
    made = sender.post("/workflows", {"files": filters, "name": "evil"})
    assert made.status == 201 and not made.json["workflows"][0]["runnable"]
    begun = sender.post("/runs", {"workflow": "evil"})
    assert begun.status == 422


# ---- using them ----


@pytest.mark.req("R004-43", "R004-45", "R004-46")
def test_a_run_is_begun_by_name_version_and_parameters(sender):
    sender.post("/workflows", {"files": sip_files()})
    missing = sender.post("/runs", {"workflow": "vis"})
    assert found(missing) == ["missing-parameter"]
    assert "stage a needs the parameter 'site'" in missing.json["findings"][0]["message"]
    given = {"workflow": "vis", "version": "1.0.0", "parameters": {"site": "north"}}
    begun = sender.post("/runs", given)
    assert begun.status == 201, begun.body
    run = begun.json["run"]
    assert (run["workflow"], run["folder"]) == ("vis", "vis/1.0.0 of the registry")
    assert run["options"]["parameters"] == '{"site": "north"}'
    assert found(sender.post("/runs", {"workflow": "viz"})) == ["unknown-workflow"]
    assert found(sender.post("/runs", given | {"version": "7"})) == ["unknown-version"]


def test_a_request_that_comes_again_makes_no_second_run(sender):
    sender.post("/workflows", {"files": sip_files()})
    given = {"workflow": "vis", "parameters": {"site": "north"}}
    first = sender.post("/runs", given, Idempotency_Key="again")
    again = sender.post("/runs", given, Idempotency_Key="again")
    assert first.json["run"]["name"] == again.json["run"]["name"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"version": "1"},
        {"workflow": "vis", "variables": {"a": 1}},
        {"workflow": "vis", "flow": FLOW, "version": "1"},
        {"workflow": "vis", "flow": FLOW, "parameters": {"a": 1}},
    ],
)
def test_what_a_run_is_made_of_is_said_in_one_way(sender, body):
    reply = sender.post("/runs", body)
    assert (reply.status, reply.code) == (422, "invalid")


def test_a_workflow_is_checked_and_rendered_with_parameters(sender):
    sender.post("/workflows", {"files": sip_files()})
    for path in ("/workflows/vis", "/workflows/vis/1.0.0"):
        assert sender.post(f"{path}/check", {}).json["runnable"]
        bad = sender.post(f"{path}/check", {"parameters": {"nodes": 2}})
        assert (bad.status, bad.json["runnable"]) == (200, False)
        made = sender.post(f"{path}/render", {"parameters": {"site": "n"}})
        assert made.json["stages"]["a"]["command"] == ["echo", "at n with 4"]
        assert found(sender.post(f"{path}/render", {})) == ["missing-parameter"]
    for method, path in (("GET", ""), ("POST", "/check"), ("POST", "/render"), ("DELETE", "")):
        body = {} if method == "POST" else None
        reply = sender.ask(method, f"/workflows/viz{path}", body)
        assert (reply.status, reply.code) == (404, "unknown_workflow"), (method, path)


# ---- who may ----


def test_only_workflows_that_a_token_is_for_are_seen_and_changed(server, sender):
    vis = server.caller("submit", names=["vis"])
    tide = server.caller("submit", names=["tide"])
    flow = {"files": {"flow.cylc": FLOW}, "name": "tide"}
    both = {"bundles": [{"files": sip_files()}, flow]}
    refused = vis.post("/workflows", both)
    assert (refused.status, refused.code) == (403, "forbidden")
    assert names(sender) == []
    assert vis.post("/workflows", {"files": sip_files()}).status == 201
    assert tide.post("/workflows", flow).status == 201
    assert (names(vis), names(tide)) == (["vis/1.0.0"], ["tide/2.1"])
    for method, path in (("GET", ""), ("POST", "/check"), ("POST", "/render"), ("DELETE", "")):
        body = {} if method == "POST" else None
        assert tide.ask(method, f"/workflows/vis{path}", body).status == 403
    assert tide.post("/runs", {"workflow": "vis", "parameters": {"site": "x"}}).status == 403


def test_readers_look_and_change_nothing(server, sender):
    sender.post("/workflows", {"files": sip_files()})
    reader = server.caller("read")
    assert names(reader) == ["vis/1.0.0"]
    assert reader.post("/workflows/vis/check", {}).status == 200
    assert reader.post("/workflows", {"files": sip_files()}).status == 403
    assert reader.ask("DELETE", "/workflows/vis").status == 403
    assert server.stranger().get("/workflows").status == 401


def test_what_was_registered_and_removed_is_in_the_audit(server, sender):
    sender.post("/workflows", {"files": sip_files()})
    sender.ask("DELETE", "/workflows/vis/1.0.0")
    entries = server.caller("admin").get("/audit").json["entries"]
    told = [(one["verb"], one["target"]) for one in entries[:2]]
    assert told == [
        ("DELETE /api/v1/workflows/{name}/{version}", "vis, 1.0.0"),
        ("POST /api/v1/workflows", "vis/1.0.0"),
    ]


def test_one_definition_of_a_bundle_is_registered_and_one_that_is_not_there_is_refused(sender):
    files = sip_files() | {"other-1.0.0.yaml": sip_files()["vis-1.0.0.yaml"]}
    for missing in ("nothing.yaml", "../vis-1.0.0.yaml", "flow.cylc"):
        refused = sender.post("/workflows", {"files": files, "file": missing})
        assert refused.status == 422 and missing in refused.json["message"]
    assert names(sender) == []
    inside = {f"top/{path}": text for path, text in files.items()}
    made = sender.post("/workflows", {"files": inside, "file": "top/vis-1.0.0.yaml"})
    assert made.status == 201 and names(sender) == ["vis/1.0.0"]


def test_two_versions_are_compared_and_one_file_is_sent_as_it_is(server, sender):
    for version, script in (("1", "true"), ("2", "false")):
        text = f"[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\nscript = {script}\n"
        body = {"files": {"flow.cylc": text}, "name": "two", "version": version}
        assert sender.post("/workflows", body).status == 201
    told = sender.get("/workflows/two/1/diff?against=2").json
    [file] = told["files"]
    assert (told["version"], told["against"], file["change"]) == ("1", "2", "changed")
    changed = [
        line["text"] for hunk in file["hunks"] for line in hunk if line["kind"] != "same"
    ]
    assert changed == ["script = true", "script = false"]
    sent = sender.get("/workflows/two/2/definition?path=flow.cylc")
    assert sent.body.endswith(b"script = false\n")
    assert sent.headers["content-type"] == "application/octet-stream"
    assert sender.get("/workflows/two/2/definition?path=../etc").status == 404
    assert sender.get("/workflows/two/1/diff?against=9").status == 404
    other = server.caller("read", names=("elsewhere",))
    assert other.get("/workflows/two/1/diff?against=2").status in (403, 404)
    assert other.get("/workflows/two/1/definition?path=flow.cylc").status in (403, 404)
