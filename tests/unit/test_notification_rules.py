"""Rules about who is told of what: what they mean, and every mistake in them."""

import re
from pathlib import Path

import pytest

from tidewheel.services.notifications.messages import (
    ENDED_MAX,
    TASKS_NAMED_MAX,
    WAITING_PER_RULE_MAX,
    Notification,
    NotifierState,
    read_state,
    sentence,
    write_state,
)
from tidewheel.services.notifications.rules import (
    EVENTS,
    FIELDS,
    MailTo,
    NotificationRule,
    RunCommand,
    Webhook,
    filled,
    load_rules,
    read_rules,
    unknown_fields,
)

ROOT = Path(__file__).parents[2]

GOOD = """
[[rule]]
name = "operators"
on = ["stall", "failed"]
workflow = "nwp/*"
every = "PT5M"
to = { webhook = "https://chat.example/hook", secret = "s", headers = { X-Team = "a" } }

[[rule]]
on = "late"
after = 90
to = { mail = ["a@example.org", "b@example.org"], from = "c@example.org" }

[[rule]]
on = ["completed"]
to = { command = ["logger", "{event} {run}"] }

[[rule]]
on = ["completed"]
to = { command = "logger done" }
"""


def one(**items):
    lines = {"on": '["stall"]', "to": '{ mail = "a@example.org" }'} | items
    return "[[rule]]\n" + "".join(f"{name} = {text}\n" for name, text in lines.items() if text)


def findings(text):
    return list(read_rules(text.encode()).findings)


def test_rules_are_read_as_they_are_written():
    found = read_rules(GOOD.encode())
    assert found.findings == []
    operators, late, program, line = found.rules
    assert operators == NotificationRule(
        name="operators",
        on=("stall", "failed"),
        workflow="nwp/*",
        every_seconds=300.0,
        to=Webhook(url="https://chat.example/hook", secret="s", headers=(("X-Team", "a"),)),
    )
    assert late.to == MailTo(to=("a@example.org", "b@example.org"), sender="c@example.org")
    assert (late.name, late.after_seconds, late.every_seconds) == ("rule-2", 90.0, 60.0)
    assert program.to == RunCommand(words=("logger", "{event} {run}"))
    assert line.to == RunCommand(line="logger done")


def test_every_mistake_is_found_at_once_and_the_other_rules_count():
    text = one(on='["stal"]', workflow="3", every='"soon"', colour='"red"') + one()
    found = read_rules(text.encode())
    assert [rule.name for rule in found.rules] == ["rule-2"]
    assert len(found.findings) == 4
    assert all(text.startswith("rule 1 (rule-1): ") for text in found.findings)
    assert "'stal' is not an event; expected one of stall, blocked" in " ".join(found.findings)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[rule", "not valid TOML"),
        (b"\xff".decode("latin-1"), "not valid TOML"),
        ("rule = 3", "write [[rule]]"),
        ("x = 1", "'x' is not known"),
        (one(on=""), "`on` is missing"),
        (one(to=""), "to: say where to"),
        (one(to='{ mail = "a@b.c", command = "x" }'), "to: say where to"),
        (one(to='{ mail = "nobody" }'), "not an address"),
        (one(to='{ mail = "a@b.c\\nBcc: d@e.f" }'), "not an address"),
        (one(to='{ mail = "a@b.c", secret = "x" }'), "'secret' is not known"),
        (one(to='{ webhook = "ftp://x/" }'), "not a URL"),
        (one(to='{ webhook = "http://[/" }'), "not a URL"),
        (one(to='{ webhook = "http://x/a b" }'), "not a URL"),
        (one(to='{ webhook = "https://a:b@x/" }'), "put it into headers"),
        (one(to='{ webhook = "http://x/", headers = { Host = "y" } }'), "not a header"),
        (one(to='{ webhook = "http://x/", headers = { A = "b\\r\\nC: d" } }'), "printable"),
        (one(to='{ webhook = "http://x/", anywhere = "yes" }'), "true or false"),
        (one(to="{ command = [] }"), "a program and its arguments"),
        (one(to='{ command = ["x", "{nothing}"] }'), "{nothing} is not a field"),
        (one(text='"{secret}"'), "{secret} is not a field"),
        (one(name='"a b"'), "letters"),
        (one(after='"PT1H"'), "only for the event late"),
        (one(name='"x"') + one(name='"x"'), "another rule has it"),
    ],
)
def test_a_mistake_is_named_with_what_would_be_accepted(text, said):
    [*found] = findings(text)
    assert any(said in one for one in found), found


def test_a_file_that_is_not_there_has_no_rules_and_no_mistakes(tmp_path):
    found = load_rules(tmp_path / "notify.toml")
    assert (found.rules, found.findings) == ((), ())


def test_a_secret_that_others_may_read_is_found(tmp_path):
    path = tmp_path / "notify.toml"
    path.write_text(GOOD)
    path.chmod(0o644)
    [finding] = load_rules(path).findings
    assert "chmod 600" in finding
    path.chmod(0o600)
    assert load_rules(path).findings == []
    path.unlink()
    path.mkdir()
    assert load_rules(path).findings


def test_fields_are_put_in_once_and_nothing_else_is_read():
    facts = {"run": "{event}", "event": "failed"}
    assert (
        filled("{run} {event} {Run} {0} {{run}}", facts) == "{event} failed {Run} {0} {{event}}"
    )
    assert unknown_fields("{run} {x} {x}") == ["x"]


def message(number=1, **fields):
    given = {"rule": "r", "event": "failed", "run": "a/run1", "workflow": "a", "at": 1.0}
    return Notification(id=f"id-{number}", **(given | fields))


RULE = NotificationRule(name="r", on=("failed",), to=RunCommand(line="true"))


def test_many_tasks_are_counted_and_some_of_them_named():
    many = message(tasks=tuple(f"1/t{n}" for n in range(3)), count=5)
    assert sentence(many) == "a/run1: 5 tasks failed: 1/t0, 1/t1, 1/t2 and 2 more"
    more = many.joined(message(tasks=tuple(f"2/t{n}" for n in range(30)), count=30))
    assert (more.id, more.count, len(more.tasks)) == ("id-1", 35, TASKS_NAMED_MAX)


def test_what_waits_is_bounded_and_what_was_dropped_is_counted():
    state = NotifierState()
    for number in range(WAITING_PER_RULE_MAX):
        assert state.put(RULE, message(number, run=f"a/run{number}"), 1.0)
    assert not state.put(RULE, message(-1, run="b"), 1.0)
    assert state.missed == {"r": 1}
    assert state.put(
        NotificationRule(name="s", on=("failed",), to=RULE.to), message(-2, rule="s"), 1.0
    )
    first = next(state.due(1.0))
    state.sent(first, 2.0)
    assert state.missed == {}
    assert [one.outcome for one in state.ended] == ["dropped", "sent"]


def test_the_state_is_bounded_however_much_happens_and_reads_back_as_it_was():
    state = NotifierState()
    for number in range(10_000):
        state.is_news(f"mark {number}")
        state.saw_status(number, "running")
    for number in range(2 * ENDED_MAX):
        state.put(RULE, message(number, run=f"a/run{number}"), 1.0)
        state.sent(next(state.due(1.0)), 1.0)
    assert (len(state.told), len(state.statuses), len(state.ended)) == (5_000, 2_000, ENDED_MAX)
    text = write_state(state)
    assert len(text) < 1_000_000
    assert write_state(read_state(text)) == text


@pytest.mark.parametrize("text", ["", "{", '{"waiting": 3}', '{"cursor": "?"}'])
def test_a_state_that_cannot_be_read_is_begun_anew(text):
    assert write_state(read_state(text)) == write_state(NotifierState())


def test_a_message_that_was_tried_is_not_changed_by_what_comes_after():
    state = NotifierState()
    state.put(RULE, message(1), 1.0)
    state.put(RULE, message(2), 1.0)
    [one] = state.waiting
    state.failed(one, "no", 1.0)
    state.put(RULE, message(3), 1.0)
    assert [waiting.message.id for waiting in state.waiting] == ["id-1", "id-3"]


def test_the_rules_on_their_page_are_right_and_every_event_and_field_is_on_it():
    page = (ROOT / "docs" / "notifications.md").read_text()
    [example] = re.findall(r"```toml[^\n]*\n(.*?)```", page, re.DOTALL)
    found = read_rules(example.encode())
    assert (len(found.rules), list(found.findings)) == (3, [])
    assert all(f"`{event}`" in page for event in EVENTS)
    assert all(f"{{{field}}}" in page for field in FIELDS)
