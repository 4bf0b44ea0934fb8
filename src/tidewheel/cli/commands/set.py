"""``tidewheel set``: outputs completed, or prerequisites satisfied, by hand."""

from __future__ import annotations

from tidewheel.cli.verb_command import verb_command

command = verb_command("set")
