"""``tidewheel trigger``: run tasks now, or see what that would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from tidewheel.cli.run_acting import command_from, fields_given, give_verb, verb_command
from tidewheel.cli.session import Session


def _act(session: Session, words: Sequence[str], options: Mapping[str, object]) -> int:
    if not options["dry_run"]:
        return give_verb(session, "trigger", words, options)
    import json

    from tidewheel.cli.printing import say_json
    from tidewheel.cli.run_door import Document, look
    from tidewheel.cli.run_preview_page import say_preview
    from tidewheel.cli.run_target import Target
    from tidewheel.core.runs.commands import command_text

    given = fields_given("trigger", options)

    def arguments(target: Target) -> Document:
        return {"command": json.loads(command_text(command_from("trigger", target, given)))}

    document = look(session, "dry-run", words, arguments)
    if session.as_json:
        say_json(document)
    else:
        say_preview(document)
    return 0


command = verb_command("trigger", _act)
command.params.insert(
    -2,
    click.Option(["--dry-run", "-n"], is_flag=True, help="Only show what would run and wait."),
)
