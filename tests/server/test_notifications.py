"""Notifications over HTTP: what an admin sees of rules, and the button that tries them."""

import pytest

from tests.support.http_server import running_server
from tests.support.receiver import receiver
from tidewheel.config import RULES_FILE


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def server(home):
    with running_server(f"sqlite:///{home}/tidewheel.db", home=home) as running:
        yield running


@pytest.fixture
def hook():
    with receiver() as found:
        yield found


def write(home, text):
    path = home / RULES_FILE
    path.write_text(text)
    path.chmod(0o600)


def rule(hook, name="ops"):
    to = f'{{ webhook = "{hook.url}/secret-path", secret = "hush" }}'
    return f'[[rule]]\nname = "{name}"\non = ["stall"]\nto = {to}\n'


def test_an_admin_tries_a_rule_and_hears_whether_it_arrived(home, admin, hook):
    write(home, rule(hook) + rule(hook, "other"))
    answer = admin.post("/notifications/test", {"rule": "ops"})
    assert answer.status == 200
    [test] = answer.json["tests"]
    assert (test["rule"], test["sent"], test["error"]) == ("ops", True, "")
    [post] = hook.posts
    assert post.json["test"] is True
    assert post.json["id"] == test["id"]
    assert admin.post("/notifications/test", {}).json["tests"][1]["rule"] == "other"
    told = [entry["target"] for entry in admin.get("/audit?limit=2").json["entries"]]
    assert sorted(told) == ["rule *", "rule ops"]


def test_what_went_wrong_is_in_the_answer(home, admin, hook):
    write(home, rule(hook) + "[[rule]]\n")
    hook.answers.append((410, {}))
    answer = admin.post("/notifications/test", {"rule": None}).json
    assert not answer["tests"][0]["sent"]
    assert "410" in answer["tests"][0]["error"]
    assert any("`on` is missing" in finding for finding in answer["findings"])


def test_rules_are_shown_without_what_opens_something(home, admin, hook):
    command = '[[rule]]\non = ["late"]\nto = { command = ["curl", "-u", "me:hush"] }\n'
    write(home, rule(hook) + command)
    answer = admin.get("/notifications")
    assert answer.status == 200
    assert b"hush" not in answer.body and b"secret-path" not in answer.body
    assert [one["to"] for one in answer.json["rules"]] == [
        f"http://127.0.0.1:{hook.port}/…",
        "curl …",
    ]
    assert (answer.json["waiting"], answer.json["ended"]) == ([], [])


def test_a_rule_that_is_not_there_is_not_found(admin):
    assert admin.post("/notifications/test", {"rule": "nobody"}).status == 404


def test_only_admins_may(reader, operator, server):
    for caller in (reader, operator):
        assert caller.get("/notifications").status == 403
        assert caller.post("/notifications/test", {}).status == 403
    assert server.stranger().post("/notifications/test", {}).status == 401
