"""``tidewheel kill``: the jobs of active tasks are ended."""

from __future__ import annotations

from tidewheel.cli.verb_command import verb_command

command = verb_command("kill")
