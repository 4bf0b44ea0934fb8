"""`tidewheel notify`: rules are listed, checked and tried, here or through a server."""

import json

from tests.support.http_server import running_server
from tests.support.receiver import receiver
from tidewheel.config import RULES_FILE


def write(tidewheel, text):
    tidewheel.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = tidewheel.state / RULES_FILE
    path.write_text(text)
    path.chmod(0o600)


def rule(hook, name="ops"):
    return f'[[rule]]\nname = "{name}"\non = ["stall"]\nto = {{ webhook = "{hook.url}" }}\n'


def test_check_names_every_finding_and_makes_no_store(tidewheel):
    write(
        tidewheel, '[[rule]]\non = ["x"]\n[[rule]]\non = ["stall"]\nto = { mail = "a@b.c" }\n'
    )
    answer = tidewheel("notify", "check")
    assert answer.status == 1
    assert "rule 1 (rule-1): on: 'x' is not an event" in answer.out
    assert "to: say where to" in answer.out
    assert "1 rule in force" in answer.err
    assert not (tidewheel.state / "tidewheel.db").exists()
    document = tidewheel("notify", "check", "--json").json
    assert len(document["findings"]) == 2
    assert document["rules"][0]["to"] == "a@b.c"


def test_a_newcomer_without_rules_is_told_where_they_go(tidewheel):
    assert tidewheel("notify", "check").status == 0
    answer = tidewheel("notify", "list")
    assert f"no rules in {tidewheel.state / RULES_FILE}" in answer.err
    assert tidewheel("notify", "test").status == 1
    assert tidewheel("notify", "list", "x").status == 2


def test_a_test_says_for_each_rule_whether_it_arrived(tidewheel):
    with receiver() as hook:
        write(tidewheel, rule(hook) + rule(hook, "second"))
        hook.answers.append((503, {}))
        answer = tidewheel("notify", "test")
        assert answer.status == 1
        assert sorted(line.partition(":")[0] for line in answer.out.splitlines()) == [
            "ops",
            "second",
        ]
        assert "503" in answer.out
        assert tidewheel("notify", "test", "second").out == "second: sent\n"
        assert all(post.json["test"] for post in hook.posts)
    assert tidewheel("notify", "test", "nobody").status == 2
    assert "ops" in tidewheel("notify", "list").out


def test_through_a_server_it_is_the_rules_of_the_server(tidewheel, tmp_path):
    home = tmp_path / "server"
    home.mkdir()
    with (
        receiver() as hook,
        running_server(f"sqlite:///{home}/tidewheel.db", home=home) as server,
    ):
        (home / RULES_FILE).write_text(rule(hook, "there"))
        given = {
            "TIDEWHEEL_SERVER": f"http://{server.address}",
            "TIDEWHEEL_TOKEN": server.caller("admin").token,
        }
        assert tidewheel("notify", "test", **given).out == "there: sent\n"
        assert tidewheel("notify", "list", **given).out.split()[5] == "there"
        listed = json.loads(tidewheel("notify", "check", "--json", **given).out)
        assert listed["rules"][0]["name"] == "there"
        assert [post.json["rule"] for post in hook.posts] == ["there"]
