"""``tidewheel trigger``: run tasks now, or see what that would do."""

from __future__ import annotations

from tidewheel.cli.verb_command import verb_command

command = verb_command("trigger")
