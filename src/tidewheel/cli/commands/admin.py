"""Defines the commands of those who keep a store, from token to migrate."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TextIO, cast

import click
import msgspec

from tidewheel.api.tasks import Violation
from tidewheel.api.wire import Fields, document, read
from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.output import (
    json_line,
    note,
    plural,
    safe,
    say,
    say_columns,
    say_found,
    say_json,
    say_table,
)
from tidewheel.cli.parameters import DURATION
from tidewheel.cli.session import (
    Session,
    check_action,
    check_apart,
    check_beside,
    option,
    session_command,
)
from tidewheel.core.queue.access import (
    AuditEntry,
    Scope,
    TokenView,
    audit_break,
    grant_of,
)
from tidewheel.core.queue.task import Instant
from tidewheel.errors import BadSetting
from tidewheel.vocabulary import time_text

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient
    from tidewheel.ports.runs import BringsNotifications
    from tidewheel.services.file_removal import Orphan


@session_command(
    "token",
    "token create ada --scope submit --scope operate --for team-a",
    "token create ci --scope submit --queue 'ci-*' --lasts 90d",
    "token list",
    "token revoke 3",
    "token link",
)
@click.argument("action", type=click.Choice(["create", "list", "revoke", "link"]))
@click.argument("name", required=False)
@option(
    "--scope ...",
    "What the token allows; repeatable. Every scope includes read; admin includes all scopes.",
    type=click.Choice([scope.value for scope in Scope]),
)
@option(
    "--for NAME...",
    "The token is valid for queues, workflows, runs and objects named NAME or NAME/…; `*` "
    "stands for any text. Repeatable.",
)
@option(
    "--queue GLOB...",
    "The token is valid only for these queues; `run:NAME` is the queue of run NAME.",
)
@option("--workflow GLOB...", "The token is valid only for these workflows and their runs.")
@option("--lasts", "How long the token is valid. [default: until revoked]", type=DURATION)
def token_command(session: Session, action: str, name: str | None, **options: Any) -> int:  # noqa: ANN401
    """Create a token called NAME, list tokens, or revoke one by its number.

    The token is printed once; the store keeps a hash of it. `link` prints an address that signs
    a browser in with the rights of your own token; it works once, within five minutes.
    """
    check_action(
        action, dict.fromkeys(("scope", "for", "queue", "workflow", "lasts"), "create")
    )
    if action == "list":
        return _list_tokens(session)
    if action == "link":
        return _link(session)
    if name is None:
        wanted = "NAME --scope SCOPE" if action == "create" else "NUMBER"
        raise click.UsageError(f"say which: tidewheel token {action} {wanted}")
    return _create(session, name, options) if action == "create" else _revoke(session, name)


def _create(session: Session, name: str, options: dict[str, Any]) -> int:
    from tidewheel.client.tokens import make_token

    if not options["scope"]:
        raise click.UsageError("say what the token allows: --scope " + "|".join(Scope))
    grant = grant_of(
        map(Scope, options["scope"]),
        options["for"],
        options["queue"] or None,
        options["workflow"] or None,
    )
    if not grant.names:
        raise click.UsageError(
            "say for which names the token is valid: --for team-a (team-a and team-a/…), or "
            "--for '*'"
        )
    text, view = session.ask_or_make(
        lambda client: make_token(client.store, name, grant, options["lasts"])
    )

    def show(_: object) -> None:
        say(text)
        revoke = f"tidewheel token revoke {view.number}"
        note(f"token {view.number} is shown only this once; to revoke it: {revoke}")
        note(f"it is valid for {', '.join(map(safe, view.grant.names))}")

    return session.answer({"token": text, "stored": document(view)}, show)


def _list_tokens(session: Session) -> int:
    async def look(client: AsyncClient) -> tuple[list[TokenView], Instant]:
        return await client.store.tokens(), await client.store.now()

    tokens, now = session.ask(look)

    def state(view: TokenView) -> str:
        if view.revoked_at is not None:
            return "revoked"
        return "valid" if view.is_valid(now) else "expired"

    columns: dict[str, Callable[[TokenView], str]] = {
        "TOKEN": lambda view: str(view.number),
        "KIND": lambda view: view.kind.value,
        "NAME": lambda view: view.name,
        # What people who signed in may do is said by the access file, not by the token.
        "SCOPES": lambda view: (
            ",".join(sorted(view.grant.scopes)) if view.identity is None else "(signed in)"
        ),
        "FOR": lambda view: ",".join(view.grant.names),
        "USED": lambda view: time_text(view.used_at) or "never",
        "ENDS": lambda view: time_text(view.expires_at) or "",
        "STATE": state,
    }
    empty = "no tokens; make one: tidewheel token create NAME --scope admin"
    return session.answer(
        {"tokens": [document(view) for view in tokens]},
        lambda _: say_found(tokens, columns, empty, drop=("ENDS",)),
    )


def _revoke(session: Session, number: str) -> int:
    if not (number.isascii() and number.isdigit()):
        raise click.UsageError(
            f"{safe(number)!r} is not the number of a token; list them: tidewheel token list"
        )
    view = session.ask(lambda client: client.store.revoke_token(int(number)))
    told = f"token {view.number} ({safe(view.name)}) is revoked"
    return session.answer(document(view), lambda _: note(told))


def _link(session: Session) -> int:
    from tidewheel.client.tokens import server_url
    from tidewheel.store.remote import RemoteStore

    def show(told: dict[str, str]) -> None:
        say(told["login"])
        note("single use, expires in 5 minutes")

    at_server = session._replace(store=server_url(session.store))
    login = at_server.ask(lambda client: cast("RemoteStore", client.store).login_link())
    return session.answer({"login": login}, show)


# ---- `notify` ----

MESSAGES_SHOWN = 20
NOTIFY_EPILOG = """\b
Examples:
  tidewheel notify check
  tidewheel notify test operators
  tidewheel notify list
Rules are in the file notify.toml in the state directory, for example:
  [[rule]]
  name = "operators"
  on = ["stall", "failed"]
  to = { mail = "operators@example.org" }
"""


@session_command("notify", epilog=NOTIFY_EPILOG)
@click.argument("action", type=click.Choice(["list", "check", "test"]))
@click.argument("rule", required=False)
def notify_command(session: Session, action: str, rule: str | None) -> int:
    """List notification rules and what was sent, check the rules, or send a test notification
    for RULE or for all rules.

    With --server these are the rules of that server; only its admins may do this.
    """
    if action != "test" and rule is not None:
        raise click.UsageError(
            f"list and check take no rule; to test it: tidewheel notify test {rule}"
        )
    if action == "test":
        return _test(session, rule)
    if action == "check":
        return _check(session)
    found = session.ask(lambda client: _desk(client).notifications())
    return session.answer(found, _show_rules)


def _desk(client: AsyncClient) -> BringsNotifications:
    from tidewheel.config import home_directory, scheduler_settings
    from tidewheel.wiring.services import notification_desk

    return notification_desk(client.store, home_directory(), scheduler_settings().smtp)


def _check(session: Session) -> int:
    """Checks the rules; those of this host without opening a store. Returns exit status 1 if
    something is wrong."""
    from tidewheel.config import RULES_FILE, home_directory
    from tidewheel.services.notifications.rules import load_rules, rules_document
    from tidewheel.wiring.stores import is_remote

    found: Any
    if is_remote(session.store):
        found = session.ask(lambda client: _desk(client).notifications())
    else:
        path = home_directory() / RULES_FILE
        found = {"file": str(path), **rules_document(load_rules(path))}

    def show(_: object) -> None:
        for text in found["findings"]:
            say(safe(text))
        note(f"{safe(found['file'])}: {plural(len(found['rules']), 'rule')} in force")

    session.answer({name: found[name] for name in ("file", "rules", "findings")}, show)
    return ExitCode.FAILED if found["findings"] else ExitCode.DONE


def _show_rules(found: Any) -> None:  # noqa: ANN401 - a document
    columns: dict[str, Callable[[Any], str] | str] = {
        "RULE": "name",
        "ON": lambda one: " ".join(one["on"]),
        "WORKFLOW": "workflow",
        "TASK": "task",
        "TO": "to",
    }
    empty = f"no rules in {safe(found['file'])}; tidewheel notify --help shows an example"
    say_found(found["rules"], columns, empty)
    messages = [one | {"state": f"due {one['due_at']}"} for one in found["waiting"]]
    messages += [one | {"state": one["outcome"]} for one in found["ended"]]
    if messages:
        say("")
        names = ("rule", "event", "run", "tries", "state")
        columns = {"MESSAGE": lambda one: one["id"][:8]}
        columns |= {name.upper(): name for name in names} | {"": "error"}
        say_columns(messages[:MESSAGES_SHOWN], columns)
    if found["findings"]:
        note("some rules are wrong; see: tidewheel notify check")
    sender = found["sender"]
    who = "no process sends notifications now; start tidewheel up, scheduler, server or run"
    note(f"sent by {safe(sender)}" if sender else who)


def _test(session: Session, rule: str | None) -> int:
    found: Any = session.ask(lambda client: _desk(client).try_notifications(rule))
    tests = found["tests"]

    def show(_: object) -> None:
        for one in tests:
            say(f"{safe(one['rule'])}: {'sent' if one['sent'] else safe(one['error'])}")
        for text in found["findings"]:
            note(safe(text))
        if not tests:
            note("there is no rule to test; see: tidewheel notify check")

    session.answer(found, show)
    return ExitCode.DONE if tests and all(one["sent"] for one in tests) else ExitCode.FAILED


# ---- `verify`, `audit` and `migrate` ----


@session_command(
    "verify",
    "verify",
    "verify --files                   also list folders without a run or task in the store",
    "verify --files --delete --yes    remove these folders",
    "verify --audit-head 1042:6f1d…   also check that this audit entry is still there",
)
@option(
    "--files",
    "List folders in this host's state directory whose run or task is not in the store, with "
    "their sizes.",
)
@option("--delete deletes", "With --files: remove the folders that it lists.")
@option(
    "--unmarked",
    "With --delete: also remove folders that may belong to another store.",
)
@option("--yes is_sure", "With --delete: remove the folders without asking.")
@option(
    "--audit-head NUMBER:SHA256",
    "Check that this audit entry is still there, so that you notice if the end of the audit "
    "was cut off. Servers log the last entry (`audit.head`), and verify prints it.",
)
def verify_command(
    session: Session, *, files: bool, audit_head: str | None, **how: bool
) -> int:
    """List every inconsistency in the store; exit 1 if there is one."""
    check_beside({"deletes": "files", "unmarked": "deletes", "is_sure": "deletes"})
    found, head = session.ask_existing(lambda client: _verified(client, audit_head))
    document: dict[str, object] = {
        "audit": head,
        "violations": [
            {"invariant": one.invariant, "task": one.task_id, "seen": one.seen} for one in found
        ],
    }
    if not session.as_json:
        if found:
            rows = [(one.invariant, one.task_id, one.seen) for one in found]
            say_table(("INVARIANT", "TASK", "SEEN"), rows)
        else:
            say("OK: no inconsistencies found")
        if head is not None:
            note(f"the last audit entry is {head}; keep it elsewhere to compare later")
    if files:
        document |= _check_files(session, how)
    if session.as_json:
        say_json(document)
    return ExitCode.FAILED if found else ExitCode.DONE


async def _verified(
    client: AsyncClient, audit_head: str | None
) -> tuple[list[Violation], str | None]:
    """Returns what is wrong with a store, and the last entry of its audit; it is also wrong if
    an entry that was told before is not there."""
    found = await client.verify()
    if audit_head is not None:
        number, _, digest = audit_head.partition(":")
        if not (number.isascii() and number.isdigit() and digest):
            raise click.UsageError(f"--audit-head {safe(audit_head)!r}: give NUMBER:SHA256")
        told = await client.store.audit(before=int(number) + 1, count=1)
        if not told or (told[0].number, told[0].sha256) != (int(number), digest.lower()):
            seen = f"it is missing, or its SHA-256 is not {digest}"
            found = [
                *found,
                Violation(invariant="audit", task_id=f"entry {number}", seen=seen),
            ]
    newest = await client.store.audit(count=1)
    return found, _head(newest[0]) if newest else None


def _head(entry: AuditEntry) -> str | None:
    return None if entry.sha256 is None else f"{entry.number}:{entry.sha256}"


STANDARD_OUTPUT = "-"
_FILE = click.Path(exists=True, dir_okay=False)
AUDIT_SHOWN = 50
AUDIT_PAGE = 1_000


@session_command(
    "audit",
    "audit                      the newest entries",
    "audit --export audit.jsonl every entry, oldest first, one JSON document per line",
    "audit --check audit.jsonl  check such a file for missing or changed entries; needs no "
    "store",
)
@option(
    "--limit N",
    "The maximum number of entries to list.",
    type=click.IntRange(1, AUDIT_PAGE),
    shown=AUDIT_SHOWN,
)
@option("--export export_to FILE", "Write every entry to this file; - means standard output.")
@option("--check check_file", "Check a file that --export wrote.", type=_FILE)
def audit_command(
    session: Session, limit: int | None, export_to: str | None, check_file: str | None
) -> int:
    """List who changed what, and who was refused, newest first.

    At a server, only admins may do this. Each entry has a hash of itself and of the entry
    before it, so `--check` and `verify` find the first entry that was changed, removed or
    inserted. The owner of the database can compute the hashes anew; `verify
    --audit-head` finds that, too.
    """
    check_apart(("export_to",), "check_file")
    if check_file is not None:
        return _check_audit(session, check_file)
    if export_to is not None:
        return _export_audit(session, export_to)
    found = session.ask_existing(lambda client: client.store.audit(count=limit or AUDIT_SHOWN))

    def show(_: object) -> None:
        from tidewheel.server.resources.tokens import deed_words

        columns: dict[str, Callable[[AuditEntry], str]] = {
            "ENTRY": lambda one: str(one.number),
            "AT": lambda one: time_text(one.at) or "",
            "WHO": lambda one: one.who,
            "FROM": lambda one: one.client,
            "STATUS": lambda one: str(one.status),
            "WHAT": deed_words,
        }
        say_found(
            found,
            columns,
            "the audit is empty: nothing was changed through a server yet",
            drop=("STATUS",),
        )

    return session.answer({"entries": [document(one) for one in found]}, show)


def _export_audit(session: Session, path: str) -> int:
    if path == STANDARD_OUTPUT:
        session.ask_existing(lambda client: _write_audit(client, sys.stdout))
        return ExitCode.DONE

    async def write(client: AsyncClient) -> int:
        try:  # for nobody else: it tells who did what
            with open(path, "x", encoding="utf-8", opener=partial(os.open, mode=0o600)) as file:
                return await _write_audit(client, file)
        except OSError as error:
            accepted = "the path of a new file in an existing folder"
            raise BadSetting("export", path, f"{accepted} ({error.strerror})") from None

    count = session.ask_existing(write)
    told = f"{plural(count, 'entry', 'entries')} written to {safe(path)}"
    return session.answer({"exported": count, "file": path}, lambda _: note(told))


async def _write_audit(client: AsyncClient, file: TextIO) -> int:
    number, count = 0, 0
    while page := await client.store.audit(after=number, count=AUDIT_PAGE):
        file.writelines(json_line(document(entry)) + "\n" for entry in page)
        number, count = page[-1].number, count + len(page)
    return count


def _check_audit(session: Session, path: str) -> int:
    """Checks an exported audit; returns exit status 1 if it is broken."""
    before, seen, count = None, None, 0
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            count += 1
            try:
                entry = read(AuditEntry, msgspec.json.decode(line, type=Fields))
            except (ValueError, TypeError):
                seen = f"line {count} is not an audit entry"
            else:
                seen = audit_break(before, entry)
                before = entry if seen is None else before
            if seen is not None:
                break
    head = None if before is None else _head(before)
    entries = plural(count, "entry", "entries")
    told = seen or f"{entries}; none was changed, none is missing; the last is {head}"
    session.answer(
        {"entries": count, "head": head, "broken": seen}, lambda _: say(f"{safe(path)}: {told}")
    )
    return ExitCode.DONE if seen is None else ExitCode.FAILED


def _check_files(session: Session, how: dict[str, bool]) -> dict[str, object]:
    from tidewheel.config import home_directory
    from tidewheel.services.file_removal import find_orphans, remove_orphan
    from tidewheel.wiring.stores import is_remote, opened_store

    if is_remote(session.store):
        raise click.UsageError(
            "--files compares the files of this host with a database; name the database that "
            "the server uses: --store URL"
        )
    home = home_directory()

    async def find() -> list[Orphan]:
        async with opened_store(session.store) as store:
            return await find_orphans(store, home)

    found = asyncio.run(find())
    if not session.as_json:
        _show_orphans(found, str(home))
    removed = []
    going = [one for one in found if not one.in_use]
    going = going if how["unmarked"] else [one for one in going if not one.is_unmarked]
    is_agreed = bool(going) and how["deletes"]
    if is_agreed and not how["is_sure"]:
        if not sys.stdin.isatty():
            raise click.UsageError(
                "there is no terminal to confirm on; to remove the folders, add --yes"
            )
        is_agreed = click.confirm(
            f"Remove {plural(len(going), 'folder')} permanently?", err=True
        )
    if is_agreed:
        removed = [str(home / one.path) for one in going if remove_orphan(home, one)]
        if not session.as_json:
            say(f"{len(removed)} of {plural(len(going), 'folder')} removed")
    orphans = [
        {"path": str(home / one.path), "bytes": one.size}
        | {"unmarked": one.is_unmarked, "in_use": one.in_use}
        for one in found
    ]
    return {"orphans": orphans, "removed": removed}


def _show_orphans(found: list[Orphan], home: str) -> None:
    if not found:
        say(f"every run folder and task folder in {home} belongs to a run or task in the store")
    groups = {
        "belong to no run or task in this store; remove them: tidewheel verify --files "
        "--delete": [one for one in found if not one.is_unmarked and not one.in_use],
        "belong to no run or task in this store, and may belong to another store; if no other "
        "store or server uses this state directory, remove them: "
        "tidewheel verify --files --delete --unmarked": [
            one for one in found if one.is_unmarked and not one.in_use
        ],
        "are still used by running jobs; they are not removed": [
            one for one in found if one.in_use
        ],
    }
    for said, some in groups.items():
        if some:
            say_table(("FOLDER", "BYTES"), [(one.path, str(one.size)) for one in some])
            size = sum(one.size for one in some)
            say(f"{plural(len(some), 'folder')}, {size} bytes, in {home} {said}")


@session_command("backup", "backup /backups/tidewheel-monday.db")
@click.argument("file", type=click.Path(path_type=Path))
def backup_command(session: Session, file: Path) -> int:
    """Copy the store to FILE, a new file, while everything runs, and check the copy.

    It holds tasks, runs, definitions, tokens and the audit. The manual, Backup and restore,
    says which files of the state directory you may need, too. For a store on PostgreSQL this
    prints the command that makes a backup.
    """
    from tidewheel.client.tokens import without_password
    from tidewheel.quantities import show_size
    from tidewheel.wiring.stores import back_up_store, store_settings

    file, store = file.absolute(), without_password(store_settings(session.store).url)
    if store.startswith("postgres"):
        dump = f"pg_dump --schema=tidewheel --format=custom --file={quote(str(file))}"
        fault = (
            "this command copies only SQLite stores, and nothing was copied; for PostgreSQL "
            f"run this, also while everything runs: {dump} {quote(store)}"
        )
        raise BadSetting("store", store, fault=fault)
    back_up_store(session.store, file)
    size = file.stat().st_size
    told = f"{safe(file)} is a checked copy of the store ({show_size(size)})"
    return session.answer(
        {"file": str(file), "bytes": size, "store": store}, lambda _: say(told)
    )


@session_command("migrate")
def migrate_command(session: Session) -> int:
    """Upgrade the store to the schema of this version of tidewheel.

    Before you do this, stop every process that uses the store. A SQLite store is copied first;
    the copy stays beside it.
    """
    from tidewheel.wiring.stores import migrate_store

    report = migrate_store(session.store)
    told = {
        "from_version": report.from_version,
        "to_version": report.to_version,
        "backup": None if report.backup is None else str(report.backup),
    }

    def show(_: object) -> None:
        if report.from_version == report.to_version:
            say(f"nothing to do: the store has schema version {report.to_version}")
            return
        say(f"migrated from schema version {report.from_version} to {report.to_version}")
        if report.backup is not None:
            say(f"the old store is kept as {safe(report.backup)}")

    return session.answer(told, show)
