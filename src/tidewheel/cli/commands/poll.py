"""``tidewheel poll``: how the jobs of active tasks are."""

from __future__ import annotations

from tidewheel.cli.verb_command import verb_command

command = verb_command("poll")
