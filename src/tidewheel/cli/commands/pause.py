"""``tidewheel pause``: nothing more is submitted."""

from __future__ import annotations

from tidewheel.cli.verb_command import verb_command

command = verb_command("pause")
