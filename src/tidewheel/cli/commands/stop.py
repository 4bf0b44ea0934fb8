"""``tidewheel stop``: a run ends here, or later, and can be carried on."""

from __future__ import annotations

from tidewheel.cli.verb_command import verb_command

command = verb_command("stop")
