"""``tidewheel migrate``: bring the store to this version's schema."""

from __future__ import annotations

from tidewheel.cli.output import safe, say, say_json
from tidewheel.cli.session import Session, session_command


@session_command("migrate")
def command(session: Session) -> int:
    """Upgrade the store to this version's schema; stop every process that uses it first.

    A SQLite store is copied first; the copy stays beside it.
    """
    from tidewheel.wiring.stores import migrate_store

    report = migrate_store(session.store)
    if session.as_json:
        say_json(
            {
                "from_version": report.from_version,
                "to_version": report.to_version,
                "backup": None if report.backup is None else str(report.backup),
            }
        )
    elif report.from_version == report.to_version:
        say(f"nothing to do: the store has schema version {report.to_version}")
    else:
        say(f"migrated from schema version {report.from_version} to {report.to_version}")
        if report.backup is not None:
            say(f"the store as it was: {safe(report.backup)}")
    return 0
