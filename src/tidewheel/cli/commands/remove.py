"""``tidewheel remove``: tasks out of the pool, or forgotten."""

from __future__ import annotations

from tidewheel.cli.verb_command import verb_command

command = verb_command("remove")
