"""``tidewheel verify``: check every promise against the store."""

from __future__ import annotations

from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.printing import say, say_json, say_table
from tidewheel.cli.session import Session, session_command


@session_command("verify")
def command(session: Session) -> int:
    """List every row of the store that breaks a promise; exit 1 if there is one."""
    found = session.ask_existing(lambda client: client.verify())
    if session.as_json:
        documents = [
            {"invariant": one.invariant, "task": one.task_id, "seen": one.seen} for one in found
        ]
        say_json({"violations": documents})
    elif found:
        rows = [(one.invariant, one.task_id, one.seen) for one in found]
        say_table(("INVARIANT", "TASK", "SEEN"), rows)
    else:
        say("the store keeps every promise")
    return ExitCode.FAILED if found else ExitCode.DONE
