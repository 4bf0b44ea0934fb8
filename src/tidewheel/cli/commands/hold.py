"""``tidewheel hold``: tasks that shall not run yet."""

from __future__ import annotations

from tidewheel.cli.verb_command import verb_command

command = verb_command("hold")
