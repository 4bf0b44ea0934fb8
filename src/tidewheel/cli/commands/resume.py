"""``tidewheel resume``: a paused run goes on."""

from __future__ import annotations

from tidewheel.cli.verb_command import verb_command

command = verb_command("resume")
