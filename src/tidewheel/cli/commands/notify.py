"""``tidewheel notify``: who is told of what, whether that is written right, and a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.output import Row, note, safe, say, say_json, say_table
from tidewheel.cli.session import Session, session_command

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient
    from tidewheel.ports.runs import BringsNotifications

RULE_HEADERS = ("RULE", "ON", "WORKFLOW", "TASK", "TO")
MESSAGE_HEADERS = ("MESSAGE", "RULE", "EVENT", "RUN", "TRIES", "STATE", "")
MESSAGES_SHOWN = 20
EPILOG = """\b
Examples:
  tidewheel notify check
  tidewheel notify test operators
  tidewheel notify list
Rules stand in notify.toml in the state directory, as
  [[rule]]
  name = "operators"
  on = ["stall", "failed"]
  to = { mail = "operators@example.org" }
"""


@session_command("notify", epilog=EPILOG)
@click.argument("action", type=click.Choice(["list", "check", "test"]))
@click.argument("rule", required=False)
def command(session: Session, action: str, rule: str | None) -> int:
    """List rules and what was sent, check the rules, or send a test for RULE or for all.

    Through --server it is the rules of that server, for its admins.
    """
    if action != "test" and rule is not None:
        raise click.UsageError(f"only test takes a rule: tidewheel notify test {rule}")
    if action == "test":
        return _test(session, rule)
    if action == "check":
        return _check(session, _rules(session))
    return _list(session, session.ask(lambda client: _desk(client).notifications()))


def _rules(session: Session) -> Any:  # noqa: ANN401 - a document
    """Returns the rules; no store is needed for those of this host."""
    from tidewheel.config import RULES_FILE, home_directory
    from tidewheel.wiring.stores import is_remote

    if is_remote(session.store):
        return session.ask(lambda client: _desk(client).notifications())
    from tidewheel.services.notifications.admin import rules_document
    from tidewheel.services.notifications.rules import load_rules

    path = home_directory() / RULES_FILE
    return {"file": str(path), **rules_document(load_rules(path))}


def _desk(client: AsyncClient) -> BringsNotifications:
    from tidewheel.config import home_directory, scheduler_settings
    from tidewheel.ports.store import Store
    from tidewheel.wiring.services import notification_desk

    store = cast("Store", client.store)
    return notification_desk(store, home_directory(), scheduler_settings().smtp)


def _check(session: Session, found: Any) -> int:  # noqa: ANN401 - a document
    if session.as_json:
        say_json({name: found[name] for name in ("file", "rules", "findings")})
    else:
        for text in found["findings"]:
            say(safe(text))
        count = len(found["rules"])
        note(f"{safe(found['file'])}: {count} {'rule' if count == 1 else 'rules'} in force")
    return ExitCode.FAILED if found["findings"] else 0


def _list(session: Session, found: Any) -> int:  # noqa: ANN401
    if session.as_json:
        say_json(found)
        return 0
    rules: list[Row] = [
        (one["name"], " ".join(one["on"]), one["workflow"], one["task"], one["to"])
        for one in found["rules"]
    ]
    if not rules:
        note(f"no rules in {safe(found['file'])}; tidewheel notify --help shows one")
    else:
        say_table(RULE_HEADERS, rules)
    messages = [_message(one, f"due {one['due_at']}") for one in found["waiting"]]
    messages += [_message(one, one["outcome"]) for one in found["ended"]]
    if messages:
        say("")
        say_table(MESSAGE_HEADERS, messages[:MESSAGES_SHOWN])
    if found["findings"]:
        note("something is wrong with the rules: tidewheel notify check")
    sender = found["sender"]
    note(f"sent by {safe(sender)}" if sender else f"nobody sends now; {_WHO}")
    return 0


_WHO = "tidewheel up, scheduler, server or run does while it runs"


def _message(one: Any, state: str) -> Row:  # noqa: ANN401
    tries = str(one["tries"])
    return (one["id"][:8], one["rule"], one["event"], one["run"], tries, state, one["error"])


def _test(session: Session, rule: str | None) -> int:
    found: Any = session.ask(lambda client: _desk(client).try_notifications(rule))
    tests = found["tests"]
    if session.as_json:
        say_json(found)
    else:
        for one in tests:
            say(f"{safe(one['rule'])}: {'sent' if one['sent'] else safe(one['error'])}")
        for text in found["findings"]:
            note(safe(text))
        if not tests:
            note("there is no rule to try: tidewheel notify check")
    return 0 if tests and all(one["sent"] for one in tests) else ExitCode.FAILED
