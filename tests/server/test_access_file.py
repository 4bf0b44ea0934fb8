"""The access file: who may do what after signing in, and people whom a trusted proxy names."""

import os
import re
import socket

import pytest

from tests.server.test_sessions import FORM
from tests.support.event_reader import EventReader
from tests.support.http_server import Caller, running_server
from tests.support.written_examples import ROOT
from tidewheel.core.queue.access import Identity, Scope
from tidewheel.errors import BadSetting
from tidewheel.server.access_file import AccessFile, load_access

HEAD = """
[header]
user = "X-Forwarded-User"
groups = "X-Forwarded-Groups"
secret_file = "proxy-secret"
"""
SECRET = "known to proxy and server"
RULES = """
[[grant]]
group = "everybody"
scopes = ["read"]
names = ["*"]

[[grant]]
group = "team-a"
scopes = ["submit", "operate"]
names = ["team-a/*"]
"""
ADMINS = """
[[grant]]
person = "root@example.org"
scopes = ["admin"]
names = ["*"]
"""


def written(path, text, mode=0o600):
    """Replaces a file as an editor does: at once. Beside it is the secret of the proxy."""
    secret = path.with_name("proxy-secret")
    secret.touch(mode=0o600)
    secret.write_text(f"{SECRET}\n")
    new = path.with_suffix(".new")
    new.write_text(text)
    new.chmod(mode)
    new.replace(path)
    return path


def test_a_file_says_how_people_sign_in_and_what_they_may(tmp_path):
    (tmp_path / "secret").write_text("s3cret\n")
    (tmp_path / "secret").chmod(0o600)
    text = """
[oidc]
issuer = "https://login.example.org/realms/lab"
client_id = "tidewheel"
client_secret_file = "secret"
person_claim = "preferred_username"
lasts = "4h"
"""
    found = load_access(written(tmp_path / "access.toml", text + RULES))
    assert found.oidc.issuer == "https://login.example.org/realms/lab"
    assert (found.oidc.client_secret, found.oidc.lasts_seconds) == ("s3cret", 4 * 3600)
    assert "s3cret" not in repr(found)
    assert found.rules[1].scopes == {Scope.SUBMIT, Scope.OPERATE}
    assert found.rules[1].names == ("team-a/*",)


def test_the_files_in_the_manual_are_right(tmp_path):
    page = (ROOT / "docs/operations/sign_in.md").read_text()
    whole, header = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "oidc-secret").write_text("s")
    (tmp_path / "oidc-secret").chmod(0o600)
    found = load_access(written(tmp_path / "access.toml", whole))
    assert found.oidc.client_secret == "s" and len(found.rules) == 3
    found = load_access(written(tmp_path / "access.toml", header)).header
    assert found.secret == SECRET.encode() and SECRET not in repr(found)
    (tmp_path / "proxy-secret").write_text("short")
    with pytest.raises(BadSetting, match="the secret has 5 bytes"):
        load_access(tmp_path / "access.toml")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\n[oidc\n", "line 2"),
        ("", "no one could sign in"),
        ("[ldap]", "'ldap' is not known here"),
        ("[oidc]\nclient_id = 'x'", "oidc: issuer is missing"),
        ("[oidc]\nissuer = 'http://login.example.org'\nclient_id = 'x'", "oidc: issuer"),
        ("[oidc]\nissuer = 'https://u@e.org'\nclient_id = 'x'", "oidc: issuer"),
        ("[oidc]\nissuer = 'https://e.org'\nclient_id = 3", "oidc: client_id: '3'"),
        ("[oidc]\nissuer = 'https://e.org'\nclient_id = 'x'\nsecret = 's'", "'secret'"),
        (
            "[oidc]\nissuer = 'https://e.org'\nclient_id = 'x'\nredirect_uri = 'https://e.org/'",
            "expected https://HOST/login/oidc/callback",
        ),
        (HEAD + "lasts = '30d'", "header: lasts"),
        (HEAD.replace("secret_file", "# "), "header: secret_file is missing"),
        (HEAD.replace("proxy-secret", "short"), "header: secret_file: there is no file"),
        ("[header]\nuser = 'Authorization'", "header: user"),
        (HEAD + RULES.replace('"submit"', '"sumbit"'), "grant 2 (line 12): scopes: 'sumbit'"),
        (
            HEAD + RULES.replace('group = "team-a"\n', ""),
            "grant 2 (line 12): give either group",
        ),
        (
            HEAD + RULES.replace('names = ["team-a/*"]', ""),
            "grant 2 (line 12): names is missing",
        ),
        (HEAD + RULES.replace('["team-a/*"]', '"team-a/*"'), "names: write a list"),
        (HEAD + RULES.replace('["team-a/*"]', "[]"), "names: write a list"),
        (HEAD + ADMINS.replace('["*"]', '["team-a/*"]'), "admin is for everything"),
    ],
)
def test_each_mistake_is_told_with_its_place_and_no_part_of_the_file_counts(
    tmp_path, text, told
):
    with pytest.raises(BadSetting) as refused:
        load_access(written(tmp_path / "access.toml", text))
    assert told in str(refused.value)


@pytest.mark.parametrize("mode", [0o602, 0o620, 0o666])
def test_a_file_that_others_can_write_is_refused(tmp_path, mode):
    with pytest.raises(BadSetting, match="chmod go-w"):
        load_access(written(tmp_path / "access.toml", HEAD + RULES, mode))


def test_a_file_of_another_user_is_refused(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    path = written(tmp_path / "access.toml", HEAD + RULES)
    os.chown(path, 12345, 12345)
    with pytest.raises(BadSetting, match="another user's"):
        load_access(path)


def test_a_secret_that_others_can_read_is_refused(tmp_path):
    (tmp_path / "secret").write_text("s")
    (tmp_path / "secret").chmod(0o644)
    text = "[oidc]\nissuer = 'https://e.org'\nclient_id = 'x'\nclient_secret_file = 'secret'"
    with pytest.raises(BadSetting, match="chmod 600"):
        load_access(written(tmp_path / "access.toml", text))


def test_a_server_does_not_start_with_a_file_that_is_wrong(tmp_path):
    path = written(tmp_path / "access.toml", "[header]")
    with (
        pytest.raises(BadSetting, match="user is missing"),
        running_server(f"sqlite:///{tmp_path}/t.db", access_file=path),
    ):
        pass


def test_a_changed_file_counts_and_a_wrong_or_missing_one_leaves_what_was_read(tmp_path):
    path = written(tmp_path / "access.toml", HEAD + RULES)
    people = AccessFile(path)
    ada = Identity(person="ada", source="header", groups=("team-a",))
    assert len(people.rules_for(ada)) == 1
    for broken in ("[header", HEAD + "[[grant]]"):
        written(path, broken)
        assert len(people.rules_for(ada)) == 1
    written(path, HEAD + ADMINS, mode=0o666)
    assert len(people.rules_for(ada)) == 1
    path.unlink()
    assert len(people.rules_for(ada)) == 1
    written(path, HEAD + ADMINS)
    assert people.rules_for(ada) == ()


def test_who_signed_in_by_a_way_that_is_gone_has_no_rules(tmp_path):
    people = AccessFile(written(tmp_path / "access.toml", HEAD + RULES))
    for source in ("https://login.example.org", "oidc", ""):
        assert people.rules_for(Identity(person="a", source=source, groups=("team-a",))) == ()


# Behind a proxy that knows its people.


@pytest.fixture
def access(tmp_path):
    return written(tmp_path / "access.toml", HEAD + RULES + ADMINS)


@pytest.fixture
def site(tmp_path, access):
    with running_server(
        f"sqlite:///{tmp_path}/t.db",
        access_file=access,
        proxies=("127.0.0.1",),
        failures_max=1_000,
    ) as server:
        yield server


def named(person, *groups):
    """The headers of the proxy, which alone knows the secret."""
    said = {"X-Forwarded-User": person, "X-Forwarded-Groups": ", ".join(groups)}
    return said | {"X-Tidewheel-Proxy-Secret": SECRET}


def signed_in(server, person, *groups):
    """A browser whose requests come through the proxy, with a session."""
    headers = named(person, *groups)
    reply = Caller(server.address, headers=headers).post("//login/proxy", Content_Type=FORM)
    assert reply.status == 303, reply.body
    assert reply.headers["location"] == "/"
    cookie = reply.headers["set-cookie"].partition(";")[0]
    caller = Caller(server.address, headers=headers | {"Cookie": cookie})
    caller.csrf = caller.get("/session").json["csrf"]
    return caller


def submit(person, queue):
    return person.post("/tasks", {"queue": queue}, X_CSRF_Token=person.csrf)


def test_a_person_behind_the_proxy_may_what_the_groups_may_and_is_named(site):
    ada = signed_in(site, "ada@example.org", "team-a", "everybody")
    assert submit(ada, "team-a/x").status == 201
    reply = submit(ada, "team-b/x")
    assert reply.status == 403 and "team-a/*" in reply.json["message"]
    assert ada.get("/tasks?queue=team-b/x").status == 200  # everybody reads
    assert ada.get("/tokens").status == 403
    shown = ada.get("/session").json
    assert (shown["name"], shown["scopes"]) == (
        "ada@example.org",
        ["operate", "read", "submit"],
    )
    entries = site.caller("admin").get("/audit?limit=5").json["entries"]
    assert {one["who"] for one in entries} == {"ada@example.org"}
    assert entries[-1]["words"] == "signed in through the proxy"


def test_changes_of_such_a_person_need_the_header_of_the_page_too(site):
    """S8: the proxy lets any page of the browser's in, so a session is needed all the same."""
    ada = signed_in(site, "ada", "team-a")
    assert ada.post("/tasks", {"queue": "team-a/x"}).status == 403
    only_named = Caller(site.address, headers=named("ada", "team-a"))
    assert only_named.get("/tasks").status == 401
    assert only_named.post("//login/proxy", Origin="https://evil.example").status == 403


def test_groups_count_as_the_proxy_names_them_now(site):
    ada = signed_in(site, "ada", "team-a", "everybody")
    assert submit(ada, "team-a/x").status == 201
    ada.headers |= named("ada", "everybody")
    assert submit(ada, "team-a/x").status == 403
    ada.headers |= named("ada")
    assert ada.get("/tasks").status == 401
    ada.headers |= named("ada", "team-a")
    assert submit(ada, "team-a/x").status == 201


def test_a_session_is_of_the_person_whom_the_proxy_names(site):
    ada = signed_in(site, "ada", "team-a")
    for headers in (named("bob", "team-a"), named("root@example.org"), named("")):
        other = Caller(site.address, headers=ada.headers | headers)
        assert other.get("/tasks").status == 401
    bare = Caller(site.address, headers={"Cookie": ada.headers["Cookie"]})
    assert bare.get("/tasks").status == 401
    assert ada.get("/tasks").status == 200


def test_a_header_that_comes_twice_names_nobody(site):
    """One of them may be the caller's own, to which the proxy added its own."""
    with socket.create_connection(site.address.split(":")) as line:
        line.sendall(
            b"POST /login/proxy HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n"
            b"X-Forwarded-User: root@example.org\r\nX-Forwarded-User: ada\r\n"
            b"X-Forwarded-Groups: team-a\r\nConnection: close\r\n"
            b"X-Tidewheel-Proxy-Secret: known to proxy and server\r\n\r\n"
        )
        assert b" 401 " in line.makefile("rb").readline()


@pytest.mark.parametrize("secret", [None, "", "known to proxy and serve", f"{SECRET}, x", "é"])
def test_who_shares_the_proxy_s_address_and_not_its_secret_is_a_stranger(site, secret):
    """Such as every user of its machine."""
    headers = named("root@example.org")
    del headers["X-Tidewheel-Proxy-Secret"]
    if secret is not None:
        headers["X-Tidewheel-Proxy-Secret"] = secret
    eve = Caller(site.address, headers=headers)
    assert eve.post("//login/proxy").status == 401
    root = signed_in(site, "root@example.org")
    stolen = Caller(site.address, headers=headers | {"Cookie": root.headers["Cookie"]})
    assert stolen.get("/tasks").status == 401


def test_somebody_without_a_rule_is_told_so(site):
    reply = Caller(site.address, headers=named("eve", "x")).post("//login/proxy")
    assert reply.status == 403 and "no [[grant]]" in reply.json["message"]


@pytest.mark.parametrize("proxies", [(), ("10.0.0.1",), ("*",)])
def test_elsewhere_the_headers_count_for_nothing(tmp_path, access, proxies):
    """S34: a client that claims to be the proxy's person is a stranger."""
    url = f"sqlite:///{tmp_path}/t.db"
    with running_server(url, access_file=access, proxies=proxies) as server:
        eve = Caller(server.address, headers=named("root@example.org", "team-a"))
        assert eve.post("//login/proxy").status == 401
        assert eve.post("//login/proxy", X_Forwarded_For="10.0.0.1").status == 401
        assert eve.get("/tasks").status == 401


def test_without_the_table_header_no_header_counts(tmp_path):
    text = "[oidc]\nissuer = 'https://login.invalid'\nclient_id = 'x'" + RULES
    path = written(tmp_path / "access.toml", text)
    url = f"sqlite:///{tmp_path}/t.db"
    with running_server(url, access_file=path, proxies=("127.0.0.1",)) as server:
        eve = Caller(server.address, headers=named("ada", "team-a"))
        assert eve.post("//login/proxy").status == 401


def test_a_rule_that_is_taken_out_counts_at_the_next_request(site, access):
    root = signed_in(site, "root@example.org", "everybody")
    assert root.get("/tokens").status == 200
    stream = EventReader(root).ready()
    written(access, HEAD + RULES)
    assert root.get("/tokens").status == 403
    assert root.get("/tasks").status == 200
    assert stream.next() is None and stream.answer.isclosed()  # it showed an admin's view
    stream.close()
    written(access, HEAD + ADMINS.replace("root@", "other@"))
    assert root.get("/tasks").status == 401


def test_of_several_scopes_that_would_do_one_that_fits_is_enough(site, access):
    """Whoever operates everything and submits for one team cancels tasks of all teams."""
    text = RULES.replace('["read"]', '["operate"]').replace(', "operate"', "")
    written(access, HEAD + text)
    site.caller("submit").post("/tasks", {"id": "theirs", "queue": "team-b/x"})
    ada = signed_in(site, "ada", "team-a", "everybody")
    assert submit(ada, "team-b/x").status == 403
    assert ada.post("/tasks/theirs/cancel", {}, X_CSRF_Token=ada.csrf).status == 200
    bob = signed_in(site, "bob", "team-a")
    assert bob.post("/tasks/theirs/cancel", {}, X_CSRF_Token=bob.csrf).status == 403


def test_a_page_for_those_who_are_not_known_shows_the_ways_to_sign_in(site):
    page = site.stranger().get("//login")
    assert b'action="/login/proxy"' in page.body and b"/login/oidc" not in page.body
    refused = site.stranger().get("//status", Accept="text/html")
    assert refused.status == 401 and b'action="/login/proxy"' in refused.body
