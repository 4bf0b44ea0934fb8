"""``tidewheel release``: held tasks may run."""

from __future__ import annotations

from tidewheel.cli.run_acting import verb_command

command = verb_command("release")
